import { createRequire } from 'node:module'
import { describeOptions, listOptions, readOptions, WrongUsage, type Options, type Values } from './options.ts'
import {
  API_OPTIONS,
  BACKUP_OPTIONS,
  CLOUD_OPTIONS,
  DOCTOR_OPTIONS,
  EDGE_CREDENTIAL_OPTIONS,
  EDGE_ENROL_OPTIONS,
  EDGE_LINK_OPTIONS,
  EDGE_OPTIONS,
  EDGE_PAIR_OPTIONS,
  EDGE_PAIRINGS_OPTIONS,
  EDGE_ROTATE_KEY_OPTIONS,
  KEYS_CREATE_OPTIONS,
  KEYS_LIST_OPTIONS,
  KEYS_REVOKE_OPTIONS,
  KEYS_ROTATE_OPTIONS,
  KEYS_ROLL_OPTIONS,
  LISTEN_OPTIONS,
  POLICY_EXPLAIN_OPTIONS,
  RESEAL_OPTIONS,
  RESTORE_OPTIONS,
  SIMULATE_NFC_OPTIONS,
  SIMULATE_OPTIONS,
  SIMULATE_PSP_OPTIONS,
  SIMULATE_VENDOR_OPTIONS,
  SIMULATORS,
  START_OPTIONS,
  TRIGGER_OPTIONS,
  VERIFY_AUDIT_OPTIONS,
} from './settings.ts'
import { spellingHint } from '../policy/spelling-hint.ts'
import { chooseOutput, sayFailure, writesJson } from './output.ts'

const { version: VERSION } = createRequire(import.meta.url)('untag/package.json') as { version: string }

interface Command {
  readonly words: readonly string[]
  /** What must stand behind the words, such as EVENT. */
  readonly argument?: string
  readonly does: string
  readonly options: Options
  run(args: readonly string[]): Promise<number | void>
  /** Where the options are not all. */
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

/** A command with one word of the caller's own behind its name. */
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

/** Every command that works; nothing is listed here before it does. A command's code is loaded when it runs: help and faults come at once. */
const COMMANDS: readonly Command[] = [
  command(
    ['start'],
    'everything on one machine, with simulated devices and sandbox data',
    START_OPTIONS,
    async (settings) => (await import('./commands/start.ts')).runStart(settings),
  ),
  command(['cloud'], 'the authority and API', CLOUD_OPTIONS, async (settings) =>
    (await import('./commands/cloud.ts')).runCloud(settings),
  ),
  command(
    ['keys', 'create'],
    'makes an API key, and its account when that is new',
    KEYS_CREATE_OPTIONS,
    async (settings) => (await import('./commands/keys.ts')).runKeysCreate(settings),
  ),
  command(['keys', 'list'], 'lists keys, never the keys themselves', KEYS_LIST_OPTIONS, async (settings) =>
    (await import('./commands/keys.ts')).runKeysList(settings),
  ),
  command(['keys', 'roll'], 'makes a new key in the place of another', KEYS_ROLL_OPTIONS, async (settings) =>
    (await import('./commands/keys.ts')).runKeysRoll(settings),
  ),
  command(['keys', 'rotate'], 'changes a key that the cloud signs with', KEYS_ROTATE_OPTIONS, async (settings) =>
    (await import('./commands/signing-keys.ts')).runKeysRotate(settings),
  ),
  command(['keys', 'revoke'], 'ends an API key or a signing key at once', KEYS_REVOKE_OPTIONS, async (settings) =>
    (await import('./commands/keys.ts')).runKeysRevoke(settings),
  ),
  command(
    ['verify-audit'],
    'tells whether the audit log is as it was written',
    VERIFY_AUDIT_OPTIONS,
    async (settings) => (await import('./commands/verify-audit.ts')).runVerifyAudit(settings),
  ),
  command(
    ['reseal'],
    'makes a new sealing key, and seals the secrets in the database with it',
    RESEAL_OPTIONS,
    async (settings) => (await import('./commands/reseal.ts')).runReseal(settings),
  ),
  command(['backup'], 'copies the cloud’s data, beside a running cloud', BACKUP_OPTIONS, async (settings) =>
    (await import('./commands/backup.ts')).runBackup(settings),
  ),
  command(['restore'], 'puts a backup in the place of the cloud’s data', RESTORE_OPTIONS, async (settings) =>
    (await import('./commands/restore.ts')).runRestore(settings),
  ),
  command(['edge', 'enrol'], 'enrols this machine’s agent in a store', EDGE_ENROL_OPTIONS, async (settings) =>
    (await import('./commands/edge.ts')).runEnrol(settings),
  ),
  command(
    ['edge', 'credential'],
    'prints the credential for programs that use the agent',
    EDGE_CREDENTIAL_OPTIONS,
    async (settings) => (await import('./commands/edge-access.ts')).runCredential(settings),
  ),
  command(['edge', 'link'], 'prints a one-time link that pairs a browser', EDGE_LINK_OPTIONS, async (settings) =>
    (await import('./commands/edge-access.ts')).runLink(settings),
  ),
  command(
    ['edge', 'pair'],
    'makes a named credential for one program that uses the agent',
    EDGE_PAIR_OPTIONS,
    async (settings) => (await import('./commands/edge-access.ts')).runPair(settings),
  ),
  command(
    ['edge', 'pairings'],
    'lists paired programs and browsers, or revokes one',
    EDGE_PAIRINGS_OPTIONS,
    async (settings) => (await import('./commands/edge-access.ts')).runPairings(settings),
  ),
  command(['edge', 'rotate-key'], 'has the agent change its key', EDGE_ROTATE_KEY_OPTIONS, async (settings) =>
    (await import('./commands/edge.ts')).runRotateKey(settings),
  ),
  command(['edge'], 'runs the agent', EDGE_OPTIONS, async (settings) =>
    (await import('./commands/edge.ts')).runEdge(settings),
  ),
  {
    words: ['api'],
    does: 'calls an operation of the API: untag api OPERATION --field value',
    options: API_OPTIONS,
    run: async (args) => (await import('./commands/api.ts')).runApi(args, process.env),
    help: async (args) => (await import('./commands/api.ts')).apiHelp(args),
  },
  ...SIMULATORS.map((name) =>
    command(['simulate', name], `a simulated ${name} on a TCP port`, SIMULATE_OPTIONS, async (settings) =>
      (await import('./commands/simulate.ts')).runSimulate(name, settings),
    ),
  ),
  command(
    ['simulate', 'nfc'],
    'a simulated NFC reader behind a pcscd of its own',
    SIMULATE_NFC_OPTIONS,
    async (settings) => (await import('./commands/simulate-nfc.ts')).runSimulateNfc(settings),
  ),
  commandWith(
    ['simulate', 'replay'],
    'FILE',
    'a device on a TCP port that says again what a trace holds',
    SIMULATE_OPTIONS,
    async (file, settings) => (await import('./commands/simulate-readers.ts')).runReplay(file, settings),
  ),
  ...(['pos', 'erp'] as const).map((side) =>
    commandWith(
      ['simulate', side],
      'SYSTEM',
      side === 'pos' ? 'a simulated till system, such as shopify' : 'a simulated ERP system, such as odoo',
      SIMULATE_VENDOR_OPTIONS,
      async (system, settings) =>
        (await import('./commands/simulate-vendor.ts')).runSimulateVendor(side, system, settings),
    ),
  ),
  command(
    ['simulate', 'psp'],
    'a payment provider that takes no money, over HTTP',
    SIMULATE_PSP_OPTIONS,
    async (settings) => (await import('./commands/simulate-psp.ts')).runSimulatePsp(settings),
  ),
  command(['listen'], 'forwards the account’s events to a receiver on this machine', LISTEN_OPTIONS, async (settings) =>
    (await import('./commands/listen.ts')).runListen(settings),
  ),
  commandWith(
    ['trigger'],
    'EVENT',
    'sends a test event to the webhooks that are registered for it',
    TRIGGER_OPTIONS,
    async (event, settings) => (await import('./commands/trigger.ts')).runTrigger(event, settings),
  ),
  command(
    ['policy', 'explain'],
    'what the policy of a store decides for a device, and why',
    POLICY_EXPLAIN_OPTIONS,
    async (settings) => (await import('./commands/policy-explain.ts')).runPolicyExplain(settings),
  ),
  command(['doctor'], 'what is missing or wrong on this machine, with its fix', DOCTOR_OPTIONS, async (settings) =>
    (await import('./commands/doctor.ts')).runDoctor(settings),
  ),
]

const NAMES = COMMANDS.map((c) => c.words.join(' '))
const SHOWS_OPTIONS = 'untag COMMAND --help shows the options of one command.'

function rowsOf(commands: readonly Command[]): string[] {
  return commands.map(
    (c) => `  untag ${[...c.words, ...(c.argument === undefined ? [] : [c.argument])].join(' ').padEnd(24)} ${c.does}`,
  )
}

function help(): string {
  return [
    'untag decides, at the shop door and at the till, whether a security tag may come off.',
    '',
    ...rowsOf(COMMANDS),
    '',
    SHOWS_OPTIONS,
    'untag --version shows the version.',
    '',
  ].join('\n')
}

/** The commands that begin with this word, such as those of `untag keys`; all when none does. */
function helpFor(word: string | undefined): string {
  const near = COMMANDS.filter((c) => c.words[0] === word)
  return near.length === 0 ? help() : [...rowsOf(near), '', SHOWS_OPTIONS, ''].join('\n')
}

function find(args: readonly string[]): Command | undefined {
  const fitting = COMMANDS.filter((c) => c.words.every((word, i) => args[i] === word))
  return fitting.toSorted((a, b) => b.words.length - a.words.length)[0]
}

/** The commands of a group whose second word is close to this one. */
function suggestionIn(group: string | undefined, word: string): string {
  const words = COMMANDS.filter((c) => c.words[0] === group).flatMap((c) => c.words[1] ?? [])
  return spellingHint(word, words).replaceAll(/(mean | or )/g, `$1${group} `)
}

/** Help as text, or what it lists as JSON. */
function showHelp(text: string, commands: readonly Command[]): void {
  const listed = commands.map(({ words, argument, does, options }) => ({
    command: ['untag', ...words, ...(argument === undefined ? [] : [argument])].join(' '),
    does,
    options: listOptions(options).map(({ flag, env, help: about }) => ({ option: `--${flag}`, env, help: about })),
  }))
  process.stdout.write(writesJson() ? `${JSON.stringify({ commands: listed })}\n` : text)
}

/** Runs a command line; answers the exit code: 0 done, 1 failed, 2 wrong usage. A server answers undefined and goes on. */
export async function main(args: readonly string[]): Promise<number | undefined> {
  chooseOutput(args, process.env)
  if (args.length === 0 || args[0] === '--help' || args[0] === 'help') {
    showHelp(help(), COMMANDS)
    return args.length === 0 ? 2 : 0
  }
  if (args[0] === '--version' || args[0] === 'version') {
    process.stdout.write(writesJson() ? `${JSON.stringify({ version: VERSION })}\n` : `${VERSION}\n`)
    return 0
  }
  const found = find(args)
  if (!found) return showUnknown(args)
  const rest = args.slice(found.words.length)
  try {
    if (rest.includes('--help')) {
      const about = `untag ${[...found.words, ...(found.argument === undefined ? [] : [found.argument])].join(' ')}: ${found.does}\n\n${describeOptions(found.options)}\n`
      const names = rest.filter((arg) => arg !== '--help' && arg !== '--json')
      showHelp(found.help ? await found.help(names) : about, [found])
      return 0
    }
    return (await found.run(rest)) ?? undefined
  } catch (error) {
    if (!(error instanceof WrongUsage)) {
      sayFailure(error)
      return 1
    }
    const word = found.argument === undefined && rest[0]?.startsWith('-') === false ? rest[0] : ''
    const near = word === '' ? '' : suggestionIn(found.words[0], word).replace(/^; d/, 'D')
    sayFailure(
      new WrongUsage([...error.faults, ...(near === '' ? [] : [near])]),
      `untag ${found.words.join(' ')} --help shows the options\n`,
    )
    return 2
  }
}

/** A line that names no command: the help of its group, or what is wrong. Answers the exit code. */
function showUnknown(args: readonly string[]): number {
  const group = COMMANDS.filter((c) => c.words[0] === args[0])
  const isGroup = group.length > 0
  if (isGroup && args.includes('--help')) {
    showHelp(helpFor(args[0]), group)
    return 0
  }
  const isWhole = isGroup && (args[1] === undefined || args[1].startsWith('-'))
  const near = isGroup ? suggestionIn(args[0], args[1] ?? '') : spellingHint(args[0] ?? '', NAMES)
  const words = args.filter((word) => word !== '--json').slice(0, 2)
  const unknown = `there is no command "${words.join(' ')}"${near}`
  const fault = isWhole ? `untag ${args[0]} goes on with another word` : unknown
  if (writesJson()) sayFailure(new WrongUsage([fault]))
  else process.stderr.write(`${fault}:\n\n${helpFor(args[0])}`)
  return 2
}
