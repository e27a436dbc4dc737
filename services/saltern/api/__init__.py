"""The role api: serves Salt's REST API (``rest_cherrypy``) to salt-pepper, SaltGUI and scripts. It has no rights of
its own: the master decides by the user's token.
"""
