import { spellingHint } from '../policy/fold-text.ts'
import { COMMANDS, type Command } from './command-table.ts'

/** The commands by purpose: title, and the first words of its commands. Each first word has one place. */
export const COMMAND_GROUPS: readonly (readonly [title: string, firstWords: readonly string[]])[] = [
  ['Start and check', ['start', 'doctor', 'completion']],
  ['Develop', ['api', 'listen', 'trigger', 'policy', 'simulate']],
  ['Run the cloud', ['cloud', 'keys', 'users', 'broker', 'reseal', 'verify-audit']],
  ['Keep the data of the cloud', ['backup', 'restore', 'migrate', 'database']],
  ['Run an agent in a store', ['edge']],
  ['Run as a service of Linux', ['service']],
]

/** More commands with one first word are one line of the whole list. */
const MOST_LINES = 8
const SHOWS_OPTIONS = 'untag COMMAND --help shows the options of a command.'

/** The command as the help writes it, with its argument. */
export function written({ words, argument }: Command): string {
  return ['untag', ...words, ...(argument === undefined ? [] : [argument])].join(' ')
}

/** Commands that begin with this word. */
export function commandsOf(word: string | undefined): Command[] {
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
export function helpOf(word: string): string {
  const title = COMMAND_GROUPS.find(([, words]) => words.includes(word))?.[0]
  const rows = commandsOf(word).map((command) => row(written(command), command.does))
  return [`untag ${word}: ${title}`, '', ...rows, '', SHOWS_OPTIONS, ''].join('\n')
}

/** If a command that begins with `first` is similar to `word`, suggests this command. */
export function suggestionIn(first: string | undefined, word: string): string {
  const words = commandsOf(first).flatMap((command) => command.words[1] ?? [])
  return spellingHint(word, new Set(words)).replaceAll(/(mean | or )/g, `$1${first} `)
}

/** Suggests commands that are similar to an unknown first word. */
export function suggestionFor(word: string): string {
  const words = COMMANDS.flatMap((command) => [command.words[0] ?? '', command.words.join(' ')])
  return spellingHint(word, new Set(words))
}
