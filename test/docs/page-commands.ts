import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { COMMANDS } from '../../bin/command-table.ts'
import { listOptions } from '../../host/options.ts'
import { ROOT } from './markdown-page.ts'

/** A code block of a page. */
export interface CodeBlock {
  page: string
  /** Line of the opening fence, from 1. */
  line: number
  /** Text after the opening fence, such as `sh untried`. Empty if there is none. */
  info: string
  text: string
  /** Text between the last heading of level 1 or 2 and the block. */
  introduction: string
}

/** All code blocks of a page between fences. */
export function codeBlocksOf(page: string): CodeBlock[] {
  const blocks: CodeBlock[] = []
  let open: CodeBlock | undefined
  let introduction = ''
  for (const [index, line] of readFileSync(join(ROOT, page), 'utf8').split('\n').entries()) {
    const info = /^\s*```(.*)$/.exec(line)?.[1]
    if (info === undefined) {
      if (open) open.text += `${line}\n`
      else introduction = /^##? /.test(line) ? '' : `${introduction}${line}\n`
    } else if (open) {
      open = undefined
    } else {
      open = { page, line: index + 1, info: info.trim(), text: '', introduction }
      blocks.push(open)
    }
  }
  return blocks
}

/** The code of a page between backticks, outside blocks. */
export function inlineCodeOf(page: string): string[] {
  const withoutBlocks = readFileSync(join(ROOT, page), 'utf8').replaceAll(/^\s*```[\s\S]*?^\s*```/gm, '')
  return [...withoutBlocks.matchAll(/`([^`\n]+)`/g)].map((match) => match[1] ?? '')
}

/** The arguments of each call of `untag` in a shell text: all that follows, up to the end of that command. */
export function untagCallsIn(text: string): string[] {
  const joined = text.replaceAll('\\\n', ' ').replaceAll(/(^|\s)#.*$/gm, '')
  const calls = joined.matchAll(/(?:^|[\s("'`])(?:untag|(?:\S*\/)?untag\.js)(?= )([^\n|;&<>)"'`]*)/gm)
  return [...calls].map((match) => (match[1] ?? '').trim())
}

/** The programs of untag that a shell text starts: a group of commands, a simulated device or system, or `npm start`. */
export function programsIn(text: string): string[] {
  const calls = untagCallsIn(text).map((call) => /^(?:simulate \S+(?= |$)|[a-z]+)/.exec(call)?.[0] ?? [])
  return [...new Set([...calls.flat(), ...(/^npm start\b/m.test(text) ? ['npm start'] : [])])]
}

/** What is wrong with the arguments of one call of `untag`: the command or an option does not exist. */
export function faultsOfCall(call: string): string[] {
  const words = call.split(/\s+/)
  if (call === '' || words[0]?.startsWith('--')) return []
  const matching = COMMANDS.filter((command) => command.words.every((word, index) => words[index] === word))
  const command = matching.toSorted((a, b) => b.words.length - a.words.length)[0]
  const isGroup = COMMANDS.some((any) => words.every((word, index) => any.words[index] === word))
  if (!command) return isGroup ? [] : [`there is no command: untag ${call}`]
  // The fields of an operation are options of `untag api` too. The command itself rejects a wrong one.
  if (command.words[0] === 'api') return []
  const known = new Set(['help', ...listOptions(command.options).map((option) => option.flag)])
  const named = [...call.matchAll(/(?:^|\s)--([a-z][a-z0-9-]*)/g)].map((match) => match[1] ?? '')
  return named
    .filter((flag) => !known.has(flag))
    .map((flag) => `untag ${command.words.join(' ')} has no option --${flag}: untag ${call}`)
}

/** Assignments of ports, such as `CLOUD_PORT=8080`, which a reader changes if a port is taken. */
const PORT_VARIABLE = /\b([A-Z]+_PORT)=(\d+)/g

/** A shell text with other numbers in its assignments of ports, as a reader writes them whose ports are taken. */
export function withPorts(text: string, portFor: (port: number) => number): string {
  return text.replaceAll(PORT_VARIABLE, (_, name: string, port: string) => `${name}=${portFor(Number(port))}`)
}

/** The ports of this machine that a shell text names as numbers, each as often as it stands there. */
export function portsIn(text: string): number[] {
  const named = text.matchAll(/(?:127\.0\.0\.1:|localhost:|-port[ =]|PORT=)(\d{4,5})\b/g)
  return [...named].map((match) => Number(match[1]))
}
