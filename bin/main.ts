import cluster from 'node:cluster'
import { createRequire } from 'node:module'
import { COMMANDS, type Command } from './command-table.ts'
import { describeOptions, listOptions, WrongUsage } from '../host/options.ts'
import { chooseOutput, printFailure, printNote, writesJson } from '../host/output.ts'
import { spellingHint } from '../policy/fold-text.ts'

const { version: VERSION, testedNode: TESTED_NODE } = createRequire(import.meta.url)('untag/package.json') as {
  version: string
  /** Major versions of Node.js with which `.ci/full` runs the tests. */
  testedNode: readonly number[]
}

// A reader such as `head` may end first.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error
  process.exit()
})

/** True for the options that show the help. */
const isHelp = (arg: string) => arg === '--help' || arg === '-h'

function find(args: readonly string[]): Command | undefined {
  const fitting = COMMANDS.filter((c) => c.words.every((word, i) => args[i] === word))
  return fitting.toSorted((a, b) => b.words.length - a.words.length)[0]
}

/** Prints help as text, or with --json as JSON. */
function showHelp(text: string, commands: readonly Command[]): void {
  const listed = commands.map((command) => ({
    command: written(command),
    does: command.does,
    options: listOptions(command.options).map(({ flag, env, help: about }) => ({
      option: `--${flag}`,
      env,
      help: about,
    })),
  }))
  process.stdout.write(writesJson() ? `${JSON.stringify({ commands: listed })}\n` : text)
}

/** Notes that this version of Node.js was not tested. Workers leave this to the process that starts them. */
function noteUntestedNode(): void {
  const { node } = process.versions
  if (cluster.isWorker || TESTED_NODE.includes(Number.parseInt(node, 10))) return
  const tested = new Intl.ListFormat('en-GB', { type: 'disjunction' }).format(TESTED_NODE.map(String))
  printNote(`untag was not tested with Node.js ${node}: if something fails, use ${tested}`)
}

/** `help cloud` means `cloud --help`. */
function withoutHelpWord(args: readonly string[]): readonly string[] {
  const isOfCommand = args[0] === 'help' && args.slice(1).some((arg) => !arg.startsWith('-'))
  return isOfCommand ? [...args.slice(1), '--help'] : args
}

/** Runs a command line. Returns the exit code: 0 done, 1 failed, 2 wrong usage; undefined while a server runs. */
export async function main(line: readonly string[]): Promise<number | undefined> {
  const args = withoutHelpWord(line)
  chooseOutput(args, process.env)
  if (args.length === 0 || isHelp(args[0] ?? '') || args[0] === 'help') {
    showHelp(help(), COMMANDS)
    return args.length === 0 ? 2 : 0
  }
  if (args[0] === '--version' || args[0] === 'version') {
    process.stdout.write(writesJson() ? `${JSON.stringify({ version: VERSION })}\n` : `${VERSION}\n`)
    return 0
  }
  const found = find(args)
  if (!found || isUnknownSecond(found, args)) return showUnknown(args)
  noteUntestedNode()
  const rest = args.slice(found.words.length)
  try {
    if (rest.some(isHelp)) {
      const about = `${written(found)}: ${found.does}\n\n${describeOptions(found.options)}\n`
      const names = rest.filter((arg) => !isHelp(arg) && arg !== '--json')
      showHelp(found.help ? await found.help(names) : about, [found])
      return 0
    }
    return (await found.run(rest)) ?? undefined
  } catch (error) {
    if (!(error instanceof WrongUsage)) {
      printFailure(error)
      return 1
    }
    const word = found.argument === undefined && rest[0]?.startsWith('-') === false ? rest[0] : ''
    const near = word === '' ? '' : suggestionIn(found.words[0], word).replace(/^; d/, 'D')
    printFailure(
      new WrongUsage([...error.faults, ...(near === '' ? [] : [near])]),
      error.about === undefined
        ? `untag ${found.words.join(' ')} --help shows the options.\n`
        : `untag ${error.about} --help shows the fields.\n`,
    )
    return 2
  }
}

/** True for `edge foo`: the command takes no argument, and others begin with its word. */
function isUnknownSecond({ words, argument, help: own }: Command, [first, second = '-']: readonly string[]): boolean {
  const hasOthers = commandsOf(first).length > 1
  return words.length === 1 && argument === undefined && !own && hasOthers && !second.startsWith('-')
}

/** Handles a command line without a known command. Prints help or the fault, and returns the exit code. */
function showUnknown(args: readonly string[]): number {
  const [first = '', second = '', third = ''] = args.filter((word) => word !== '--json')
  const group = commandsOf(first)
  const isGroup = group.length > 0
  if (isGroup && args.some(isHelp)) {
    showHelp(helpOf(first), group)
    return 0
  }
  if (isGroup && (second === '' || second.startsWith('-')))
    printFailure(new WrongUsage([`untag ${first} needs a second word`]), `\n${helpOf(first)}`)
  else if (group.some(({ words }) => words[1] === second)) {
    const words = group.flatMap((each) => (each.words[1] === second ? (each.words[2] ?? []) : []))
    const unknown = third === '' || third.startsWith('-') ? '' : `, not "${third}"`
    printFailure(
      new WrongUsage([`untag ${first} ${second} needs one of these words: ${words.join(', ')}${unknown}`]),
      `untag ${first} --help lists the commands that begin with ${first}.\n`,
    )
  } else if (isGroup)
    printFailure(
      new WrongUsage([`there is no command "${first} ${second}"${suggestionIn(first, second) || secondWords(first)}`]),
      `untag ${first} --help lists the commands that begin with ${first}.\n`,
    )
  else
    printFailure(
      new WrongUsage([`there is no command "${first}"${suggestionFor(first)}`]),
      'untag --help lists all commands.\n',
    )
  return 2
}

/** The commands by purpose: title, and the first words of its commands. Each first word has one place. */
export const COMMAND_GROUPS: readonly (readonly [title: string, firstWords: readonly string[]])[] = [
  ['Start and check', ['start', 'doctor', 'completion']],
  ['Develop', ['api', 'listen', 'trigger', 'policy', 'simulate']],
  ['Run the cloud', ['cloud', 'keys', 'users', 'admins', 'broker', 'reseal', 'verify-audit']],
  ['Keep the data of the cloud', ['backup', 'restore', 'migrate', 'database']],
  ['Run an agent in a store', ['edge']],
  ['Run as a service of Linux', ['service']],
]

/** More commands with one first word are one line of the whole list. */
const MOST_LINES = 8
const SHOWS_OPTIONS = 'untag COMMAND --help shows the options of a command.'

/** The command as the help writes it, with its argument. */
function written({ words, argument }: Command): string {
  return ['untag', ...words, ...(argument === undefined ? [] : [argument])].join(' ')
}

/** Commands that begin with this word. */
function commandsOf(word: string | undefined): Command[] {
  return COMMANDS.filter((command) => command.words[0] === word)
}

function row(usage: string, does: string): string {
  return `  ${usage.padEnd(30)} ${does}`
}

function rowsOf(word: string): string[] {
  const commands = commandsOf(word)
  if (commands.length > MOST_LINES && commands.every(({ words }) => words.length > 1))
    return [row(`untag ${word} …`, `${commands.length} commands: untag ${word} --help lists them`)]
  return commands.map((command) => row(written(command), command.does))
}

/** Help for all commands. */
export function help(): string {
  const groups = COMMAND_GROUPS.flatMap(([title, words]) => [title, ...words.flatMap(rowsOf), ''])
  return [
    'untag decides, at the shop door and at the till, whether a security tag may come off.',
    '',
    ...groups,
    SHOWS_OPTIONS,
    'untag --version shows the version. In a checkout, write node bin/untag.js instead of untag.',
    '',
  ].join('\n')
}

/** Help for the commands that begin with one word, such as `untag keys`. */
function helpOf(word: string): string {
  const rows = commandsOf(word).map((command) => row(written(command), command.does))
  return [`Commands of untag ${word}:`, '', ...rows, '', SHOWS_OPTIONS, ''].join('\n')
}

/** If a command that begins with `first` is similar to `word`, suggests this command. */
function suggestionIn(first: string | undefined, word: string): string {
  const words = commandsOf(first).flatMap((command) => command.words[1] ?? [])
  return spellingHint(word, new Set(words)).replaceAll(/(mean | or )/g, `$1${first} `)
}

/** The second words of the commands that begin with this word. */
function secondWords(first: string): string {
  const words = new Set(commandsOf(first).flatMap((command) => command.words[1] ?? []))
  return `; the words after ${first} are ${[...words].toSorted().join(', ')}`
}

/** Suggests commands that are similar to an unknown first word. */
function suggestionFor(word: string): string {
  const words = COMMANDS.flatMap((command) => [command.words[0] ?? '', command.words.join(' ')])
  return spellingHint(word, new Set(words))
}
