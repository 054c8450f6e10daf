import cluster from 'node:cluster'
import { createRequire } from 'node:module'
import { COMMANDS, type Command } from './command-table.ts'
import { describeOptions, listOptions, WrongUsage } from './options.ts'
import { spellingHint } from '../policy/spelling-hint.ts'
import { chooseOutput, printFailure, printNote, writesJson } from './output.ts'

const { version: VERSION, testedNode: TESTED_NODE } = createRequire(import.meta.url)('untag/package.json') as {
  version: string
  /** Major versions of Node.js with which `.ci/full` runs the tests. */
  testedNode: readonly number[]
}

const NAMES = COMMANDS.map((c) => c.words.join(' '))
const SHOWS_OPTIONS = 'untag COMMAND --help shows the options of a command.'

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
    'untag --version shows the version. In a checkout, write node bin/untag.js instead of untag.',
    '',
  ].join('\n')
}

/** Help for a group of commands such as `untag keys`. Without such a group, returns the help for all commands. */
function helpFor(word: string | undefined): string {
  const near = COMMANDS.filter((c) => c.words[0] === word)
  return near.length === 0 ? help() : [...rowsOf(near), '', SHOWS_OPTIONS, ''].join('\n')
}

function find(args: readonly string[]): Command | undefined {
  const fitting = COMMANDS.filter((c) => c.words.every((word, i) => args[i] === word))
  return fitting.toSorted((a, b) => b.words.length - a.words.length)[0]
}

/** If a command of a group is similar to `word`, suggests this command. */
function suggestionIn(group: string | undefined, word: string): string {
  const words = COMMANDS.filter((c) => c.words[0] === group).flatMap((c) => c.words[1] ?? [])
  return spellingHint(word, words).replaceAll(/(mean | or )/g, `$1${group} `)
}

/** Prints help as text, or with --json as JSON. */
function showHelp(text: string, commands: readonly Command[]): void {
  const listed = commands.map(({ words, argument, does, options }) => ({
    command: ['untag', ...words, ...(argument === undefined ? [] : [argument])].join(' '),
    does,
    options: listOptions(options).map(({ flag, env, help: about }) => ({ option: `--${flag}`, env, help: about })),
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

/** Runs a command line. Returns the exit code: 0 done, 1 failed, 2 wrong usage; undefined while a server runs. */
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
  noteUntestedNode()
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
      printFailure(error)
      return 1
    }
    const word = found.argument === undefined && rest[0]?.startsWith('-') === false ? rest[0] : ''
    const near = word === '' ? '' : suggestionIn(found.words[0], word).replace(/^; d/, 'D')
    printFailure(
      new WrongUsage([...error.faults, ...(near === '' ? [] : [near])]),
      `untag ${found.words.join(' ')} --help shows the options.\n`,
    )
    return 2
  }
}

/** Handles a command line without a known command. Prints help or the fault, and returns the exit code. */
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
  const fault = isWhole ? `untag ${args[0]} needs a second word` : unknown
  if (writesJson()) printFailure(new WrongUsage([fault]))
  else process.stderr.write(`${fault}:\n\n${helpFor(args[0])}`)
  return 2
}
