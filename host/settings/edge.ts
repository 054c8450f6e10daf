import { flag, port, text, url, wholeNumber } from '../options.ts'
import { ca, dataDir, host, json, jsonLines, logLevel, pcscdSocket, tlsFiles } from './shared.ts'

/** Settings of the agent, of the commands beside it, and of services. */

export const EDGE_OPTIONS = {
  data: dataDir('var/edge'),
  config: text({
    flag: 'config',
    env: 'UNTAG_EDGE_CONFIG',
    help: 'Configuration file that lists the devices',
    placeholder: 'FILE',
  }),
  port: port({
    flag: 'port',
    env: 'UNTAG_PORT',
    help: 'Port of the pages and the local API. 0 chooses a free port',
    fallback: 8090,
  }),
  host,
  mqttUrl: url({
    flag: 'mqtt-url',
    env: 'UNTAG_MQTT_URL',
    help: 'Address of the MQTT broker. Default: the address from enrolment',
    protocols: ['mqtt:', 'mqtts:'],
  }),
  trace: text({
    flag: 'trace',
    env: 'UNTAG_TRACE_DIR',
    help: 'Record all bytes to and from devices in this folder, passwords included. See docs/reference/hardware/traces.md',
    placeholder: 'DIR',
  }),
  runtimeDir: text({
    flag: 'runtime-dir',
    env: 'UNTAG_RUNTIME_DIR',
    help: 'Folder outside --data that a reboot empties. It reveals a restored ledger. Default: XDG_RUNTIME_DIR/untag, or untag-UID in the temporary folder',
    placeholder: 'DIR',
  }),
  ...tlsFiles,
  ca,
  pcscdSocket,
  logLevel: logLevel('info'),
  json: jsonLines,
}

export const EDGE_ENROL_OPTIONS = {
  cloud: url({
    flag: 'cloud',
    env: 'UNTAG_CLOUD',
    help: 'Base URL of the API, such as https://shop.example/api/v1',
    protocols: ['http:', 'https:'],
  }),
  code: text({ flag: 'code', env: 'UNTAG_ENROL_CODE', help: 'Code from createEnrolmentCode', placeholder: 'CODE' }),
  data: dataDir('var/edge'),
  ca,
  name: text({ flag: 'name', env: 'UNTAG_AGENT_NAME', help: 'Name of this agent', placeholder: 'TEXT' }),
  replace: flag({
    flag: 'replace',
    env: 'UNTAG_ENROL_REPLACE',
    help: 'Replace the agent in this folder. The new agent takes over its ledger, devices and receipt home; used release rights stay used',
  }),
  json,
}

export const EDGE_PAIR_OPTIONS = {
  data: dataDir('var/edge'),
  name: text({
    flag: 'name',
    env: 'UNTAG_PROGRAM_NAME',
    help: 'Name of the program that uses the credential',
    placeholder: 'TEXT',
    fallback: 'program',
  }),
  may: text({
    flag: 'may',
    env: 'UNTAG_PROGRAM_MAY',
    help: 'What the program may report of a till: sales, returns, or sales,returns. It may do nothing else',
    placeholder: 'RIGHTS',
  }),
  till: text({
    flag: 'till',
    env: 'UNTAG_PROGRAM_TILL',
    help: 'The only till whose sales the program may report. Default: any, for a server of several tills',
    placeholder: 'ID',
  }),
  json,
}

export const EDGE_CREDENTIAL_OPTIONS = {
  data: dataDir('var/edge'),
  renew: flag({
    flag: 'renew',
    env: 'UNTAG_CREDENTIAL_RENEW',
    help: 'Replace the credential. A running agent rejects the former one at once',
  }),
  json,
}

export const EDGE_LINK_OPTIONS = {
  data: dataDir('var/edge'),
  host: text({
    flag: 'host',
    env: 'UNTAG_LINK_HOST',
    help: 'Host in the link, for browsers on other machines. Must be one of hosts in the agent’s configuration',
    placeholder: 'NAME',
  }),
  json,
}

export const EDGE_PAIRINGS_OPTIONS = {
  data: dataDir('var/edge'),
  revoke: text({
    flag: 'revoke',
    env: 'UNTAG_REVOKE_PAIRING',
    help: 'Id of a pairing to end at once',
    placeholder: 'ID',
  }),
  json,
}

export const EDGE_ROTATE_KEY_OPTIONS = { data: dataDir('var/edge'), json }

export const EDGE_WALK_TEST_OPTIONS = {
  data: dataDir('var/edge'),
  device: text({ flag: 'device', env: 'UNTAG_WALK_DEVICE', help: 'deviceId of the gate', placeholder: 'ID' }),
  unpaid: text({
    flag: 'unpaid',
    env: 'UNTAG_WALK_UNPAID',
    help: 'EPC or UID of a test tag that is registered and not paid',
    placeholder: 'TAG',
  }),
  paid: text({
    flag: 'paid',
    env: 'UNTAG_WALK_PAID',
    help: 'EPC or UID of a test tag whose item is paid',
    placeholder: 'TAG',
  }),
  operator: text({
    flag: 'operator',
    env: 'UNTAG_WALK_OPERATOR',
    help: 'Name of the person who tests the gate, for the report',
    placeholder: 'NAME',
  }),
  positions: text({
    flag: 'positions',
    env: 'UNTAG_WALK_POSITIONS',
    help: 'How the tag is carried, separated by semicolons',
    placeholder: 'LIST',
    fallback: 'knee, upright; knee, flat; hip, upright; hip, flat; chest, upright; chest, flat; in a bag',
  }),
  repeats: wholeNumber({
    flag: 'repeats',
    env: 'UNTAG_WALK_REPEATS',
    help: 'Walks with the unpaid tag in each position',
    placeholder: 'NUMBER',
    fallback: 3,
    min: 1,
    max: 100,
  }),
  seconds: wholeNumber({
    flag: 'seconds',
    env: 'UNTAG_WALK_SECONDS',
    help: 'Maximum duration of one walk, s',
    placeholder: 'SECONDS',
    fallback: 10,
    min: 1,
    max: 120,
  }),
  minPercent: wholeNumber({
    flag: 'min-percent',
    env: 'UNTAG_WALK_MIN_PERCENT',
    help: 'Share of walks that the gate must detect, %',
    placeholder: 'PERCENT',
    fallback: 95,
    min: 1,
    max: 100,
  }),
  config: text({
    flag: 'config',
    env: 'UNTAG_EDGE_CONFIG',
    help: 'Configuration file of the agent, whose reader settings the report shows without secrets',
    placeholder: 'FILE',
  }),
  agent: url({
    flag: 'agent',
    env: 'UNTAG_AGENT',
    help: 'Address of the agent. Default: the address that it stored',
    protocols: ['http:', 'https:'],
  }),
  out: text({
    flag: 'out',
    env: 'UNTAG_WALK_REPORT',
    help: 'Also write the report to this file: .html, .json or text',
    placeholder: 'FILE',
  }),
  json,
}

export const DOCTOR_OPTIONS = {
  data: dataDir('var/edge'),
  config: text({
    flag: 'config',
    env: 'UNTAG_EDGE_CONFIG',
    help: 'Configuration file to check. If no agent runs, the doctor connects to its devices',
    placeholder: 'FILE',
  }),
  ca,
  minFreeMb: wholeNumber({
    flag: 'min-free-mb',
    env: 'UNTAG_DOCTOR_MIN_FREE_MB',
    help: 'Free space of the disk below which is a fault, MiB',
    placeholder: 'N',
    fallback: 200,
    min: 0,
    max: 1_000_000,
  }),
  backups: text({
    flag: 'backups',
    env: 'UNTAG_BACKUP_DIR',
    help: 'Folder of untag backup. A newest backup over 26 hours old is a fault',
    placeholder: 'DIR',
  }),
  add: wholeNumber({
    flag: 'add',
    env: 'UNTAG_DOCTOR_ADD',
    help: 'Add the found device with this number to the configuration file. 0 adds nothing',
    placeholder: 'NUMBER',
    fallback: 0,
    min: 0,
    max: 1_000,
  }),
  device: text({
    flag: 'device',
    env: 'UNTAG_DOCTOR_DEVICE',
    help: 'deviceId for the added device',
    placeholder: 'ID',
  }),
  pcscdSocket,
  json,
}

const serviceOut = text({
  flag: 'out',
  env: 'UNTAG_SERVICE_OUT',
  help: 'Folder for systemd/system and sysusers.d. Packages write to another folder',
  placeholder: 'DIR',
  fallback: '/etc',
})

export const SERVICE_EDGE_OPTIONS = {
  out: serviceOut,
  ...tlsFiles,
  print: flag({ flag: 'print', env: 'UNTAG_SERVICE_PRINT', help: 'Print the files and write nothing' }),
  json,
}

export const SERVICE_CLOUD_OPTIONS = {
  ...SERVICE_EDGE_OPTIONS,
  keysDir: text({
    flag: 'keys-dir',
    env: 'UNTAG_KEYS_DIR',
    help: 'Folder of the keys, for root only. Missing keys are created. The service gets a copy in memory',
    placeholder: 'DIR',
    fallback: '/etc/untag/keys',
  }),
}

export const SERVICE_REMOVE_OPTIONS = { out: serviceOut, json }
