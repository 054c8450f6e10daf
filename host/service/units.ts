/** Programs of untag that run as a service. */
export type ServiceName = 'cloud' | 'edge'

/** Where the service finds what it needs. */
export interface UnitPlaces {
  /** Path of Node.js. */
  node: string
  /** Path of `bin/untag.js`. */
  program: string
  /** Folder of the cloud's keys, which only root reads. */
  keysDir: string
  /** Certificate and key of the service, which only root reads. Absent: no TLS, or the service reads its own files. */
  tls?: { readonly tlsCert: string; readonly tlsKey: string } | undefined
}

/** A file of a service, below the folder for settings such as `/etc`. */
export interface ServiceFile {
  path: string
  text: string
}

/** The unit of a service, and the declaration of its user for `systemd-sysusers`. */
export function serviceFiles(name: ServiceName, places: UnitPlaces): readonly ServiceFile[] {
  return [
    { path: `systemd/system/untag-${name}.service`, text: unitOf(name, places) },
    { path: `sysusers.d/untag-${name}.conf`, text: userOf(name) },
  ]
}

/** The shell commands that start a service after its files are written. */
export function nextSteps(name: ServiceName): readonly string[] {
  const data = '/var/lib/untag-edge'
  return [
    'systemd-sysusers',
    // The unit does not start before the agent is enrolled.
    ...(name === 'edge'
      ? [
          `install -d -o untag-edge -g untag-edge -m 700 ${data}`,
          `runuser -u untag-edge -- untag edge enrol --data ${data} --cloud https://CLOUD/api/v1 --code CODE`,
        ]
      : []),
    'systemctl daemon-reload',
    `systemctl enable --now untag-${name}`,
  ]
}

function userOf(name: ServiceName): string {
  const user = `untag-${name}`
  const lines = [
    `# Written by untag service install ${name}.`,
    `u ${user} - "untag ${name}" /var/lib/${user}`,
    // Members of this group may open serial ports.
    ...(name === 'edge' ? [`m ${user} dialout`] : []),
  ]
  return `${lines.join('\n')}\n`
}

function unitOf(name: ServiceName, places: UnitPlaces): string {
  return `# Written by untag service install ${name}, which overwrites changes. For your own: systemctl edit untag-${name}
[Unit]
Description=${name === 'cloud' ? 'untag cloud: API, decisions and MQTT broker' : 'untag edge: the agent of a store'}
Wants=network-online.target
After=network-online.target time-sync.target ${name === 'cloud' ? 'postgresql.service' : 'pcscd.socket'}
# systemd never gives up: the database or the disk may come back after hours.
StartLimitIntervalSec=0
${name === 'cloud' ? '' : conditionOfEdge()}
[Service]
Type=notify
# The program calls systemd-notify, so messages come from a child process.
NotifyAccess=all
ExecStart=${quoted(places.node)} --max-semi-space-size=4 ${quoted(places.program)} ${name}
EnvironmentFile=-/etc/untag/${name}.env
Environment=UNTAG_DATA_DIR=/var/lib/untag-${name}
${name === 'cloud' ? cloudLines(places) : edgeLines()}${tlsLines(places)}
Restart=always
RestartSec=5
# Exit code 2: the settings are wrong, so a restart does not help.
RestartPreventExitStatus=2
# The cloud pings while /healthz answers, the agent while its event loop runs. A lost database or device restarts nothing.
WatchdogSec=60
KillMode=mixed
# A killed worker is replaced by the program.
OOMPolicy=continue
LimitNOFILE=65536

User=untag-${name}
StateDirectory=untag-${name}
StateDirectoryMode=0700
WorkingDirectory=/var/lib/untag-${name}
UMask=0077
${SANDBOX}
${name === 'cloud' ? CLOUD_SANDBOX : EDGE_SANDBOX}

[Install]
WantedBy=multi-user.target
`
}

function conditionOfEdge(): string {
  return `# Starts once the agent is enrolled.
ConditionPathExists=/var/lib/untag-edge/agent.json
`
}

function cloudLines({ keysDir }: UnitPlaces): string {
  return `# The keys belong to root. The service gets a read-only copy in memory.
LoadCredential=master.key:${plainPath(keysDir)}/master.key
LoadCredential=root.json:${plainPath(keysDir)}/root.json
Environment=UNTAG_KEYS_DIR=%d
# Migrations of a large database take minutes.
TimeoutStartSec=15min
# The program ends by itself: at most 35 s after the highest --drain-delay, 300 s.
TimeoutStopSec=350`
}

function tlsLines({ tls }: UnitPlaces): string {
  if (!tls) return ''
  return `
# systemd copies these files when the service starts: restart the service after each renewal.
LoadCredential=tls.crt:${plainPath(tls.tlsCert)}
LoadCredential=tls.key:${plainPath(tls.tlsKey)}
Environment=UNTAG_TLS_CERT=%d/tls.crt UNTAG_TLS_KEY=%d/tls.key`
}

function edgeLines(): string {
  return `Environment=UNTAG_RUNTIME_DIR=/run/untag-edge
RuntimeDirectory=untag-edge
RuntimeDirectoryMode=0700
# A restart must not delete the watermark of the ledger.
RuntimeDirectoryPreserve=yes
TimeoutStartSec=2min
TimeoutStopSec=20`
}

/**
 * Rules for both services. MemoryDenyWriteExecute= is missing, because V8 compiles at run time. ProcSubset= is missing,
 * because the program reads `/proc/uptime` and the boot id.
 */
const SANDBOX = `
NoNewPrivileges=yes
CapabilityBoundingSet=
AmbientCapabilities=
ProtectSystem=strict
ProtectHome=yes
PrivateMounts=yes
PrivateTmp=yes
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectProc=invisible
LockPersonality=yes
RemoveIPC=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallFilter=~@privileged @resources
SystemCallErrorNumber=EPERM`

const CLOUD_SANDBOX = `PrivateDevices=yes
PrivateUsers=yes`

/** Numbers of Linux's serial devices: major number, first minor number, count. */
const SERIAL_DEVICES: readonly (readonly [string, number, number, number])[] = [
  ['ttyUSB', 188, 0, 8],
  ['ttyACM', 166, 0, 8],
  ['ttyS', 4, 64, 4],
  ['ttyAMA', 204, 64, 4],
]

/** Serial ports by number: systemd resolves names such as `char-ttyUSB` only if the driver is loaded at the start. */
const EDGE_SANDBOX = `DevicePolicy=closed
${SERIAL_DEVICES.map(([name, major, first, count]) => {
  const nodes = Array.from({ length: count }, (_, n) => `DeviceAllow=/dev/char/${major}:${first + n} rw`)
  return `# ${name}0 to ${name}${count - 1}\n${nodes.join('\n')}`
}).join('\n')}`

/** A path that starts no specifier. */
function plainPath(path: string): string {
  return path.replaceAll('%', '%%')
}

/** A word of a command line. A dollar sign would start a variable. */
function quoted(word: string): string {
  const escaped = plainPath(word).replaceAll('$', '$$$$')
  return /^[\w./:%$@+-]+$/.test(escaped) ? escaped : `"${escaped.replaceAll(/["\\]/g, '\\$&')}"`
}
