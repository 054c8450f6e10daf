import cluster from 'node:cluster'
import { createRequire } from 'node:module'
import { commandsOf, help, helpOf, suggestionFor, suggestionIn, written } from './command-help.ts'
import { COMMANDS, type Command } from './command-table.ts'
import { describeOptions, listOptions, WrongUsage } from '../host/options.ts'
import { chooseOutput, printFailure, printNote, writesJson } from '../host/output.ts'

const { version: VERSION, testedNode: TESTED_NODE } = createRequire(import.meta.url)('untag/package.json') as {
  version: string
  /** Major versions of Node.js with which `.ci/full` runs the tests. */
  testedNode: readonly number[]
}

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
  if (!found) return showUnknown(args)
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
      `untag ${found.words.join(' ')} --help shows the options.\n`,
    )
    return 2
  }
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
      new WrongUsage([`there is no command "${first} ${second}"${suggestionIn(first, second)}`]),
      `untag ${first} --help lists the commands that begin with ${first}.\n`,
    )
  else
    printFailure(
      new WrongUsage([`there is no command "${first}"${suggestionFor(first)}`]),
      'untag --help lists all commands.\n',
    )
  return 2
}
