"""What all roles and commands share: configuration, links, keys, processes, command lines, jobs, trees."""
