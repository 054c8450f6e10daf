import { readOptions, WrongUsage, type Options, type Values } from '../host/options.ts'
import * as cloud from '../host/settings/cloud.ts'
import * as data from '../host/settings/cloud-data.ts'
import * as edge from '../host/settings/edge.ts'
import * as tools from '../host/settings/tools.ts'
import { PSP_NAMES } from '../simulators/services/psp-books.ts'

/** A command of the command line. */
export interface Command {
  readonly words: readonly string[]
  /** Name of the required argument after the command, such as EVENT. */
  readonly argument?: string
  readonly does: string
  readonly options: Options
  run(args: readonly string[]): Promise<number | void>
  /** The help of a command whose options depend on its arguments. */
  help?(args: readonly string[]): Promise<string>
}

function command<O extends Options>(
  words: readonly string[],
  does: string,
  options: O,
  run: (settings: Values<O>, words: readonly string[]) => Promise<void>,
): Command {
  return { words, does, options, run: (args) => run(readOptions(options, args, process.env), words) }
}

/** A command with one required argument. */
function commandWith<O extends Options>(
  words: readonly string[],
  argument: string,
  does: string,
  options: O,
  run: (word: string, settings: Values<O>) => Promise<void>,
): Command {
  return {
    words,
    argument,
    does,
    options,
    run([word, ...args]) {
      if (word === undefined || word.startsWith('-'))
        throw new WrongUsage([`${argument} is missing: untag ${words.join(' ')} ${argument}`])
      return run(word, readOptions(options, args, process.env))
    },
  }
}

/** All commands. The code of a command is loaded when the command runs, so that help and usage errors are fast. */
export const COMMANDS: readonly Command[] = [
  command(
    ['start'],
    'Run cloud, agent and simulated devices on this machine, with sandbox data',
    cloud.START_OPTIONS,
    async (settings) => (await import('./commands/start.ts')).runStart(settings),
  ),
  command(['cloud'], 'Run the cloud: API, decisions and MQTT broker', cloud.CLOUD_OPTIONS, async (settings) =>
    (await import('./commands/cloud.ts')).runCloud(settings),
  ),
  command(
    ['broker', 'sync'],
    'Write the credentials and rights of all agents for an outside MQTT broker',
    data.BROKER_SYNC_OPTIONS,
    async (settings) => (await import('./commands/broker-sync.ts')).runBrokerSync(settings),
  ),
  command(
    ['keys', 'create'],
    'Create an API key, and its account if it is new',
    data.KEYS_CREATE_OPTIONS,
    async (settings) => (await import('./commands/keys.ts')).runKeysCreate(settings),
  ),
  command(
    ['keys', 'check'],
    'Check that the key files belong to the database, and list the signing keys',
    data.KEYS_CHECK_OPTIONS,
    async (settings) => (await import('./commands/signing-keys.ts')).runKeysCheck(settings),
  ),
  command(
    ['keys', 'list'],
    'List API keys with their state, without their secrets',
    data.KEYS_LIST_OPTIONS,
    async (settings) => (await import('./commands/keys.ts')).runKeysList(settings),
  ),
  command(
    ['keys', 'roll'],
    'Replace an API key; the old one stays valid for some hours',
    data.KEYS_ROLL_OPTIONS,
    async (settings) => (await import('./commands/keys.ts')).runKeysRoll(settings),
  ),
  command(['keys', 'rotate'], 'Replace a signing key of the cloud', data.KEYS_ROTATE_OPTIONS, async (settings) =>
    (await import('./commands/signing-keys.ts')).runKeysRotate(settings),
  ),
  command(
    ['keys', 'revoke'],
    'Revoke an API key or a signing key at once',
    data.KEYS_REVOKE_OPTIONS,
    async (settings) => (await import('./commands/keys.ts')).runKeysRevoke(settings),
  ),
  command(
    ['users', 'invite'],
    'Invite a person to the console and print the link',
    data.USERS_INVITE_OPTIONS,
    async (settings) => (await import('./commands/users.ts')).runUsersInvite(settings),
  ),
  command(['users', 'list'], 'List the users of an account', data.USERS_LIST_OPTIONS, async (settings) =>
    (await import('./commands/users.ts')).runUsersList(settings),
  ),
  command(
    ['users', 'remove'],
    'Remove a user of the console and end all sessions of the user',
    data.USERS_REMOVE_OPTIONS,
    async (settings) => (await import('./commands/users.ts')).runUsersRemove(settings),
  ),
  command(
    ['admins', 'invite'],
    'Invite a person who runs this cloud to the console and print the link',
    data.ADMINS_INVITE_OPTIONS,
    async (settings) => (await import('./commands/users.ts')).runAdminsInvite(settings),
  ),
  command(['admins', 'list'], 'List the people who run this cloud', data.ADMINS_LIST_OPTIONS, async (settings) =>
    (await import('./commands/users.ts')).runAdminsList(settings),
  ),
  command(
    ['admins', 'remove'],
    'Remove a person who runs this cloud and end all sessions of the person',
    data.ADMINS_REMOVE_OPTIONS,
    async (settings) => (await import('./commands/users.ts')).runAdminsRemove(settings),
  ),
  command(['verify-audit'], 'Check that the audit log is unchanged', data.VERIFY_AUDIT_OPTIONS, async (settings) =>
    (await import('./commands/verify-audit.ts')).runVerifyAudit(settings),
  ),
  command(
    ['reseal'],
    'Create a new master key and encrypt the secrets in the database with it',
    data.RESEAL_OPTIONS,
    async (settings) => (await import('./commands/signing-keys.ts')).runReseal(settings),
  ),
  command(['migrate'], 'Bring the tables of the database to this version', data.MIGRATE_OPTIONS, async (settings) =>
    (await import('./commands/database.ts')).runMigrate(settings),
  ),
  command(
    ['database', 'copy'],
    'Copy the SQLite database of a stopped cloud to PostgreSQL',
    data.DATABASE_COPY_OPTIONS,
    async (settings) => (await import('./commands/database.ts')).runDatabaseCopy(settings),
  ),
  command(['backup'], 'Back up the data of the cloud, also while it runs', data.BACKUP_OPTIONS, async (settings) =>
    (await import('./commands/backup.ts')).runBackup(settings),
  ),
  command(['restore'], 'Restore the data of the cloud from a backup', data.RESTORE_OPTIONS, async (settings) =>
    (await import('./commands/restore.ts')).runRestore(settings),
  ),
  command(['edge', 'enrol'], 'Enrol the agent of this machine in a store', edge.EDGE_ENROL_OPTIONS, async (settings) =>
    (await import('./commands/edge-enrol.ts')).runEnrol(settings),
  ),
  command(
    ['edge', 'credential'],
    'Print the credential for programs that use the agent',
    edge.EDGE_CREDENTIAL_OPTIONS,
    async (settings) => (await import('./commands/edge-access.ts')).runCredential(settings),
  ),
  command(['edge', 'link'], 'Print a one-time link that pairs a browser', edge.EDGE_LINK_OPTIONS, async (settings) =>
    (await import('./commands/edge-access.ts')).runLink(settings),
  ),
  command(['edge', 'pair'], 'Create a credential for one named program', edge.EDGE_PAIR_OPTIONS, async (settings) =>
    (await import('./commands/edge-access.ts')).runPair(settings),
  ),
  command(
    ['edge', 'pairings'],
    'List paired programs and browsers, or revoke one',
    edge.EDGE_PAIRINGS_OPTIONS,
    async (settings) => (await import('./commands/edge-access.ts')).runPairings(settings),
  ),
  command(['edge', 'rotate-key'], 'Let the agent replace its key', edge.EDGE_ROTATE_KEY_OPTIONS, async (settings) =>
    (await import('./commands/edge-access.ts')).runRotateKey(settings),
  ),
  command(
    ['edge', 'walk-test'],
    'Test a gate with test tags, and write its commissioning report',
    edge.EDGE_WALK_TEST_OPTIONS,
    async (settings) => (await import('./commands/walk-test.ts')).runWalkTest(settings),
  ),
  command(['edge'], 'Run the agent', edge.EDGE_OPTIONS, async (settings) =>
    (await import('./commands/edge.ts')).runEdge(settings),
  ),
  {
    words: ['api'],
    does: 'Call an operation of the API: untag api OPERATION --field value',
    options: tools.API_OPTIONS,
    run: async (args) => (await import('./commands/api.ts')).runApi(args, process.env),
    help: async (args) => (await import('./commands/api.ts')).apiHelp(args),
  },
  ...tools.SIMULATORS.map((name) =>
    command(
      ['simulate', name],
      `Simulate ${/^(?:osdp|impinj|http)/.test(name) ? 'an' : 'a'} ${name} device on a TCP port`,
      tools.SIMULATE_OPTIONS,
      async (settings) => (await import('./commands/simulate.ts')).runSimulate(name, settings),
    ),
  ),
  command(['simulate', 'nfc'], 'Simulate pcscd with one NFC reader', tools.SIMULATE_NFC_OPTIONS, async (settings) =>
    (await import('./commands/simulate-nfc.ts')).runSimulateNfc(settings),
  ),
  commandWith(
    ['simulate', 'replay'],
    'FILE',
    'Replay the device’s side of a trace on a TCP port',
    tools.SIMULATE_OPTIONS,
    async (file, settings) => (await import('./commands/simulate-readers.ts')).runReplay(file, settings),
  ),
  ...(['pos', 'erp'] as const).map((side) =>
    commandWith(
      ['simulate', side],
      'SYSTEM',
      side === 'pos' ? 'Simulate a till system, such as shopify' : 'Simulate an ERP system, such as odoo',
      tools.SIMULATE_VENDOR_OPTIONS,
      async (system, settings) =>
        (await import('./commands/simulate-services.ts')).runSimulateVendor(side, system, settings),
    ),
  ),
  command(
    ['simulate', 'till'],
    'Play a till at a running agent: sale, return, void, cut and restore on stdin',
    tools.SIMULATE_TILL_OPTIONS,
    async (settings) => (await import('./commands/simulate-till.ts')).runSimulateTill(settings),
  ),
  command(['simulate', 'psp'], 'Simulate a payment provider', tools.simulatePspOptions(PSP_NAMES), async (settings) =>
    (await import('./commands/simulate-services.ts')).runSimulatePsp(settings),
  ),
  command(
    ['listen'],
    'Forward events of the account to a URL, such as one on this machine',
    tools.LISTEN_OPTIONS,
    async (settings) => (await import('./commands/listen.ts')).runListen(settings),
  ),
  {
    ...commandWith(
      ['trigger'],
      'EVENT',
      'Send a test event to the webhooks registered for it',
      tools.TRIGGER_OPTIONS,
      async (event, settings) => (await import('./commands/trigger.ts')).runTrigger(event, settings),
    ),
    help: async () => (await import('./commands/trigger.ts')).triggerHelp(),
  },
  command(
    ['policy', 'explain'],
    'Show what the policy of a store decides for a device, and why',
    tools.POLICY_EXPLAIN_OPTIONS,
    async (settings) => (await import('./commands/policy-explain.ts')).runPolicyExplain(settings),
  ),
  command(
    ['doctor'],
    'Check this machine, list its devices and show how to fix faults',
    edge.DOCTOR_OPTIONS,
    async (settings) => (await import('./commands/doctor.ts')).runDoctor(settings),
  ),
  commandWith(
    ['completion'],
    'bash|zsh',
    'Print the script that completes commands in a shell: source <(untag completion bash)',
    tools.COMPLETION_OPTIONS,
    async (shell, settings) => (await import('./commands/completion.ts')).runCompletion(shell, settings, COMMANDS),
  ),
  command(
    ['service', 'install', 'cloud'],
    'Write the systemd unit of the cloud, and create its keys',
    edge.SERVICE_CLOUD_OPTIONS,
    async (settings) => (await import('./commands/service.ts')).runServiceInstallCloud(settings),
  ),
  command(
    ['service', 'install', 'edge'],
    'Write the systemd unit of the agent',
    edge.SERVICE_EDGE_OPTIONS,
    async (settings) => (await import('./commands/service.ts')).runServiceInstallEdge(settings),
  ),
  ...(['cloud', 'edge'] as const).map((name) =>
    command(
      ['service', 'remove', name],
      `Delete the systemd unit of the ${name === 'cloud' ? 'cloud' : 'agent'}. Data and keys stay`,
      edge.SERVICE_REMOVE_OPTIONS,
      async (settings) => (await import('./commands/service.ts')).runServiceRemove(name, settings),
    ),
  ),
]
