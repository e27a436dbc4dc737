"""What is said to database servers, and what they answer: text in, values out. Who asks runs the clients' own programs.

``mysql``     literals, names and grants of MySQL and MariaDB
``postgres``  literals and names of PostgreSQL, and what it keeps of passwords
"""
