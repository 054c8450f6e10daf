import { runCloud } from './commands/cloud.ts'
import { runDoctor } from './commands/doctor.ts'
import { runEdge, runEnrol, runPair } from './commands/edge.ts'
import { runKeysCreate } from './commands/keys.ts'
import { runSimulate, SIMULATORS } from './commands/simulate.ts'
import { runStart } from './commands/start.ts'
import { describeOptions, readOptions, WrongUsage, type Options, type Values } from './options.ts'
import { CLOUD_OPTIONS, DOCTOR_OPTIONS, EDGE_ENROL_OPTIONS, EDGE_OPTIONS, EDGE_PAIR_OPTIONS, KEYS_CREATE_OPTIONS, SIMULATE_OPTIONS, START_OPTIONS } from './settings.ts'

interface Command {
  readonly words: readonly string[]
  readonly does: string
  readonly options: Options
  run(args: readonly string[]): Promise<void>
}

function command<O extends Options>(words: readonly string[], does: string, options: O, run: (settings: Values<O>, words: readonly string[]) => Promise<void>): Command {
  return { words, does, options, run: (args) => run(readOptions(options, args, process.env), words) }
}

/** Every command that works; nothing is listed here before it does. */
const COMMANDS: readonly Command[] = [
  command(['start'], 'everything on one machine, with simulated devices and sandbox data', START_OPTIONS, runStart),
  command(['cloud'], 'the authority and API', CLOUD_OPTIONS, runCloud),
  command(['keys', 'create'], 'makes an API key, and its account when that is new', KEYS_CREATE_OPTIONS, runKeysCreate),
  command(['edge', 'enrol'], 'enrols this machine’s agent in a store', EDGE_ENROL_OPTIONS, runEnrol),
  command(['edge', 'pair'], 'makes a credential for a program that uses the agent', EDGE_PAIR_OPTIONS, runPair),
  command(['edge'], 'runs the agent', EDGE_OPTIONS, runEdge),
  ...SIMULATORS.map((name) => command(['simulate', name], `a simulated ${name} on a TCP port`, SIMULATE_OPTIONS, (settings) => runSimulate(name, settings))),
  command(['doctor'], 'what is missing or wrong on this machine, with its fix', DOCTOR_OPTIONS, runDoctor),
]

function help(): string {
  const rows = COMMANDS.map((c) => `  untag ${c.words.join(' ').padEnd(24)} ${c.does}`)
  return ['untag decides, at the shop door and at the till, whether a security tag may come off.', '', ...rows, '', 'untag COMMAND --help shows the options of one command.', ''].join('\n')
}

function find(args: readonly string[]): Command | undefined {
  const fitting = COMMANDS.filter((c) => c.words.every((word, i) => args[i] === word))
  return fitting.toSorted((a, b) => b.words.length - a.words.length)[0]
}

/** Runs a command line; answers the exit code: 0 done, 1 failed, 2 wrong usage. A server answers undefined and goes on. */
export async function main(args: readonly string[]): Promise<number | undefined> {
  if (args.length === 0 || args[0] === '--help' || args[0] === 'help') {
    process.stdout.write(help())
    return args.length === 0 ? 2 : 0
  }
  const found = find(args)
  if (!found) {
    process.stderr.write(`there is no command "${args.slice(0, 2).join(' ')}"\n\n${help()}`)
    return 2
  }
  const rest = args.slice(found.words.length)
  if (rest.includes('--help')) {
    process.stdout.write(`untag ${found.words.join(' ')}: ${found.does}\n\n${describeOptions(found.options)}\n`)
    return 0
  }
  try {
    await found.run(rest)
    return undefined
  } catch (error) {
    if (error instanceof WrongUsage) {
      process.stderr.write(`${error.faults.join('\n')}\nuntag ${found.words.join(' ')} --help shows the options\n`)
      return 2
    }
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
    return 1
  }
}
