"""The role api: Salt's REST API (``rest_cherrypy``) for salt-pepper, SaltGUI and scripts. It acts with its users' tokens alone."""
