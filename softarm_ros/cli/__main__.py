"""`python -m softarm_ros.cli` is `softarm`."""

from softarm_ros.cli.main import main

if __name__ == '__main__':
    main()
