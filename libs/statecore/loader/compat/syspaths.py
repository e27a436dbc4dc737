"""``salt.syspaths`` for users' modules: Salt's default paths, which the configuration may override."""

from pathlib import Path

ROOT_DIR = "/"
CONFIG_DIR = "/etc/salt"
SHARE_DIR = "/usr/share/salt"
CACHE_DIR = "/var/cache/salt"
SOCK_DIR = "/var/run/salt"
SRV_ROOT_DIR = "/srv"
BASE_FILE_ROOTS_DIR = "/srv/salt"
BASE_PILLAR_ROOTS_DIR = "/srv/pillar"
BASE_THORIUM_ROOTS_DIR = "/srv/thorium"
BASE_MASTER_ROOTS_DIR = "/srv/salt-master"
LIB_STATE_DIR = "/etc/salt"
LOGS_DIR = "/var/log/salt"
PIDFILE_DIR = "/var/run"
SPM_PARENT_PATH = "/srv/spm"
SPM_FORMULA_PATH = "/srv/spm/salt"
SPM_PILLAR_PATH = "/srv/spm/pillar"
SPM_REACTOR_PATH = "/srv/spm/reactor"
HOME_DIR = str(Path.home())
