"""Modules that Salt 3008 moved out of its core: the packages on PyPI that have them now, for messages.

The names are those of execution modules and states in Salt 3006.9 that 3008.3 does not have, and those of the extensions
on PyPI. ``docs/modules.md`` shows the same table.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Package(NamedTuple):
    """One Salt extension on PyPI: the modules that it contains, and the packages that it needs."""

    #: Names of its execution modules and states.
    names: tuple[str, ...]
    #: Further packages on PyPI that it needs.
    needs: tuple[str, ...] = ()


#: Name on PyPI -> package.
PACKAGES: Mapping[str, Package] = {
    "saltext-acme": Package(("acme",)),
    "saltext-apcups": Package(("apcups",)),
    "saltext-azurerm": Package(
        (
            "azurerm_compute",
            "azurerm_compute_availability_set",
            "azurerm_compute_disk",
            "azurerm_compute_image",
            "azurerm_compute_virtual_machine",
            "azurerm_compute_virtual_machine_extension",
            "azurerm_compute_virtual_machine_image",
            "azurerm_dns",
            "azurerm_keyvault_key",
            "azurerm_keyvault_secret",
            "azurerm_keyvault_vault",
            "azurerm_network",
            "azurerm_resource",
        )
    ),
    "saltext-bitwarden": Package(
        ("bitwarden",),
        (
            "requests",
            "pyhumps",
        ),
    ),
    "saltext-boto3": Package(
        (
            "boto3_apigateway",
            "boto3_asg",
            "boto3_cfn",
            "boto3_cloudfront",
            "boto3_cloudtrail",
            "boto3_cloudwatch",
            "boto3_cloudwatch_alarm",
            "boto3_cloudwatch_event",
            "boto3_cognitoidentity",
            "boto3_datapipeline",
            "boto3_dynamodb",
            "boto3_ec2",
            "boto3_efs",
            "boto3_elasticache",
            "boto3_elasticsearch",
            "boto3_elb",
            "boto3_elbv2",
            "boto3_iam",
            "boto3_iam_role",
            "boto3_iot",
            "boto3_kinesis",
            "boto3_kms",
            "boto3_lambda",
            "boto3_rds",
            "boto3_route53",
            "boto3_s3",
            "boto3_s3_bucket",
            "boto3_secgroup",
            "boto3_secretsmanager",
            "boto3_sns",
            "boto3_sqs",
            "boto3_ssm",
            "boto3_vpc",
        ),
        ("boto3",),
    ),
    "saltext-btrfs": Package(("btrfs",)),
    "saltext-consul": Package(("consul",), ("python-consul",)),
    "saltext-dockermod": Package(
        (
            "container_resource",
            "docker",
            "docker_container",
            "docker_image",
            "docker_network",
            "docker_volume",
            "dockercompose",
            "dockerng",
            "moby",
            "moby_container",
            "moby_image",
            "moby_network",
            "moby_volume",
        ),
        ("docker",),
    ),
    "saltext-elasticsearch": Package(("elasticsearch",), ("elasticsearch",)),
    "saltext-freezer": Package(("freezer",)),
    "saltext-github": Package(
        (
            "github",
            "github_org",
            "github_repo",
            "github_user",
        ),
        ("PyGithub",),
    ),
    "saltext-grafana": Package(
        (
            "grafana",
            "grafana4",
            "grafana4_dashboard",
            "grafana4_datasource",
            "grafana4_org",
            "grafana4_user",
            "grafana_dashboard",
            "grafana_datasource",
        )
    ),
    "saltext-haproxy": Package(("haproxy",)),
    "saltext-helm": Package(("helm",)),
    "saltext-incus": Package(("incus",)),
    "saltext-influxdb": Package(
        (
            "influxdb",
            "influxdb08",
            "influxdb08_database",
            "influxdb08_user",
            "influxdb_continuous_query",
            "influxdb_database",
            "influxdb_retention_policy",
            "influxdb_user",
        ),
        ("influxdb",),
    ),
    "saltext-kubernetes": Package(
        (
            "kube_bench_cache",
            "kubeadm",
            "kubernetes",
        ),
        ("kubernetes",),
    ),
    "saltext-ldap": Package(
        (
            "ldap",
            "ldap3",
        ),
        ("python-ldap",),
    ),
    "saltext-mattermost": Package(("mattermost",)),
    "saltext-mongodb": Package(
        (
            "mongodb",
            "mongodb_database",
            "mongodb_user",
        ),
        ("pymongo",),
    ),
    "saltext-mysql": Package(
        (
            "mysql",
            "mysql_database",
            "mysql_grants",
            "mysql_query",
            "mysql_user",
        ),
        (
            "pymysql",
            "sqlparse",
        ),
    ),
    "saltext-namecheap": Package(
        (
            "namecheap_domains",
            "namecheap_domains_dns",
            "namecheap_domains_ns",
            "namecheap_ssl",
            "namecheap_users",
        ),
        ("requests",),
    ),
    "saltext-napalm": Package(
        (
            "bgp",
            "napalm",
            "napalm_bgp",
            "napalm_formula",
            "napalm_net",
            "napalm_ntp",
            "napalm_route",
            "napalm_snmp",
            "napalm_users",
            "net",
            "netacl",
            "netconfig",
            "netntp",
            "netsnmp",
            "netusers",
            "ntp",
            "probes",
            "route",
            "snmp",
            "users",
        ),
        ("napalm",),
    ),
    "saltext-nebula": Package(("nebula",)),
    "saltext-nix": Package(("nix",)),
    "saltext-openscap": Package(("openscap",)),
    "saltext-pagerduty": Package(
        (
            "pagerduty",
            "pagerduty_escalation_policy",
            "pagerduty_schedule",
            "pagerduty_service",
            "pagerduty_user",
            "pagerduty_util",
        )
    ),
    "saltext-pushover": Package(("pushover",)),
    "saltext-rebootmgr": Package(("rebootmgr",)),
    "saltext-redis": Package(("redis",), ("redis",)),
    "saltext-servicenow": Package(("servicenow",)),
    "saltext-snap": Package(("snap",), ("requests",)),
    "saltext-snapper-state": Package(("snapper",)),
    "saltext-splunk": Package(
        (
            "splunk",
            "splunk_search",
        ),
        ("splunk-sdk",),
    ),
    "saltext-telegram": Package(("telegram",), ("python-telegram-bot",)),
    "saltext-transactional-update": Package(("transactional_update",)),
    "saltext-ufw": Package(("ufw",)),
    "saltext-vault": Package(
        (
            "vault",
            "vault_approle",
            "vault_db",
            "vault_gpg",
            "vault_pki",
            "vault_plugin",
            "vault_secret",
            "vault_ssh",
        ),
        (
            "requests",
            "cryptography",
        ),
    ),
    "saltext-virt": Package(("virt",), ("libvirt-python",)),
    "saltext-zabbix": Package(
        (
            "zabbix",
            "zabbix_action",
            "zabbix_host",
            "zabbix_hostgroup",
            "zabbix_mediatype",
            "zabbix_template",
            "zabbix_user",
            "zabbix_usergroup",
            "zabbix_usermacro",
            "zabbix_valuemap",
        )
    ),
    "saltext-zfs": Package(
        (
            "zfs",
            "zpool",
        )
    ),
    "saltext-zookeeper": Package(
        (
            "zk_concurrency",
            "zookeeper",
        ),
        ("kazoo",),
    ),
}


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: Execution modules of Salt 3006 that neither Salt 3008 nor a package on PyPI has.
_MODULES = _words(
    "aptly augeas aws_sqs azurearm_compute azurearm_dns azurearm_network azurearm_resource bamboohr "
    "bigip bluetooth boto_apigateway boto_asg boto_cfn boto_cloudfront boto_cloudtrail "
    "boto_cloudwatch boto_cloudwatch_event boto_cognitoidentity boto_datapipeline boto_dynamodb "
    "boto_ec2 boto_efs boto_elasticache boto_elasticsearch_domain boto_elb boto_elbv2 boto_iam "
    "boto_iot boto_kinesis boto_kms boto_lambda boto_rds boto_route53 boto_s3 boto_s3_bucket "
    "boto_secgroup boto_sns boto_sqs boto_ssm boto_vpc bower buildout cabal capirca ceph chassis cimc "
    "ciscoconfparse cisconso composer cpan csf cyg daemontools datadog ddns django dnsmasq drac dracr "
    "drbd eix eselect esxcluster esxdatacenter esxi esxvm freebsd_update gcp genesis gentoolkit "
    "glanceng glassfish glusterfs gnome google_chat grub guestfs hadoop heat hg hue icinga2 ifttt ilo "
    "imgadm infoblox inspectlib inspector introspect ipmi jail jboss7 jboss7_cli jenkins jira k8s "
    "kapacitor kerberos keystone keystoneng keystore layman libcloud_compute libcloud_dns "
    "libcloud_loadbalancer libcloud_storage logadm lvs lxc lxd makeconf mandrill marathon mdata "
    "memcached modjk monit moosefs mssql msteams munin nagios nagios_rpc netbox netmiko netscaler "
    "neutron neutronng nexus nginx nictagadm nova nspawn omapi openstack_config openstack_mng "
    "openvswitch opsgenie panos parallels pcs pdbedit pecl peeringdb pf portage_config ports postfix "
    "poudriere powerpath purefa purefb pushbullet qemu_img qemu_nbd rallydev random_org rbenv "
    "restconf riak runit rvm s3 s6 sensehat sensors serverdensity_device smtp solr solrcloud "
    "statuspage svn swarm swift sysbench sysrc system_profiler telemetry testinfra tomcat "
    "trafficserver travisci tuned twilio uptime uwsgi varnish vbox_guest vboxmanage vcenter victorops "
    "vmadm vmctl wordpress xmpp zenoss znc "
)

#: States of Salt 3006 that neither Salt 3008 nor a package on PyPI has.
_STATES = _words(
    "apt artifactory augeas aws_sqs azurearm_compute azurearm_dns azurearm_network azurearm_resource "
    "bigip boto_apigateway boto_asg boto_cfn boto_cloudfront boto_cloudtrail boto_cloudwatch_alarm "
    "boto_cloudwatch_event boto_cognitoidentity boto_datapipeline boto_dynamodb boto_ec2 "
    "boto_elasticache boto_elasticsearch_domain boto_elb boto_elbv2 boto_iam boto_iam_role boto_iot "
    "boto_kinesis boto_kms boto_lambda boto_lc boto_rds boto_route53 boto_s3 boto_s3_bucket "
    "boto_secgroup boto_sns boto_sqs boto_vpc bower buildout cabal ceph chef chronos_job cimc "
    "cisconso composer cryptdev csf cyg ddns dellchassis drac dvs elasticsearch_index "
    "elasticsearch_index_template eselect esxcluster esxdatacenter esxi esxvm ethtool glance_image "
    "glassfish glusterfs gnomedesktop heat hg icinga2 ifttt infoblox_a infoblox_cname "
    "infoblox_host_record infoblox_range ipmi jboss7 jenkins junos kapacitor kernelpkg keystone "
    "keystone_domain keystone_endpoint keystone_group keystone_project keystone_role "
    "keystone_role_grant keystone_service keystone_user keystore layman libcloud_dns "
    "libcloud_loadbalancer libcloud_storage logadm lvs_server lvs_service lxc lxd lxd_container "
    "lxd_image lxd_profile marathon_app memcached modjk modjk_worker monit mssql_database mssql_login "
    "mssql_role mssql_user msteams napalm_yang neutron_network neutron_secgroup neutron_secgroup_rule "
    "neutron_subnet nexus nfs_export nxos nxos_upgrade openstack_config openvswitch_bridge "
    "openvswitch_db openvswitch_port opsgenie panos pbm pcs pdbedit pecl portage_config ports "
    "powerpath pyrax_queues rbac rbenv rdp restconf rvm serverdensity_device slack "
    "smartos smtp solrcloud sqlite3 statuspage svn sysrc telemetry_alert testinfra tomcat "
    "trafficserver tuned vagrant vbox_guest victorops wordpress xml xmpp zenoss zone "
)

#: Kind of modules -> (names that nobody has, directory of users' modules of this kind, directory in Salt's source).
_GONE: Mapping[str, tuple[frozenset[str], str, str]] = {
    "modules": (_MODULES, "_modules", "salt/modules"),
    "states": (_STATES, "_states", "salt/states"),
}


def advice(kind: str, name: str) -> str:
    """Return the sentence that says where a module that Salt 3008 moved out is now; "" for other names.

    ``kind``: "modules", "states" ...; ``name``: the module's name, such as ``docker_container``.
    """
    successor = f"boto3_{name[5:]}" if name.startswith("boto_") else name
    for package, row in PACKAGES.items():
        if successor in row.names:
            what = name if successor == name else f"{name} is now {successor}, which"
            is_in = f"{what} is in the Salt extension {package}"
            return f"{is_in}: {command(package)}"
    gone, directory, source = _GONE.get(kind, (frozenset[str](), "", ""))
    if name not in gone:
        return ""
    return (
        f"Salt 3008 no longer has {name}, and no package on PyPI does: put {source}/{name}.py of Salt 3007 into "
        f"salt://{directory}"
    )


def command(package: str) -> str:
    """Return the shell command that installs an extension for the Python that runs Saltern.

    Without ``--no-deps`` pip would install Salt too, whose commands replace those of Saltern.
    """
    needs = PACKAGES[package].needs
    return f"pip install --no-deps {package}" + (f" && pip install {' '.join(needs)}" if needs else "")
