import { expect, it } from 'vitest'
import { readSources } from './sources.ts'

/** Finds regular expressions in a source text. A `/` after an operator, a bracket or a comma starts one. */
const LITERAL = /(?<=[=(,:[!&|?{};\n]\s*|return )\/((?![*/])(?:[^\\/[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+)\/([dgimsuvy]*)/g
/** Length of the tested texts, characters. No text field that a pattern checks before its length check is longer. */
const LENGTH = 5_000
const LIMIT_MS = 500

const patterns = readSources(['policy', 'device-drivers', 'edge-agent', 'cloud', 'clients', 'host', 'bin']).flatMap(
  (source) =>
    [...source.text.replaceAll(/\/\*[\s\S]*?\*\//g, '').matchAll(LITERAL)].flatMap(([text, body = '', flags = '']) => {
      try {
        return [{ text, path: source.path, pattern: new RegExp(body, flags.replace('y', '')) }]
      } catch {
        return [] // Not a regular expression, but a division or a path in a comment.
      }
    }),
)

/** Texts for which a pattern with nested repetitions tries every split. */
const characters = [
  'a',
  'A',
  '0',
  ' ',
  '-',
  '.',
  '/',
  ',',
  ':',
  '=',
  '_',
  '%',
  '"',
  '\t',
  '\n',
  'aA',
  'a0',
  'a.',
  'a-',
  '0.',
  ', ',
  '%4',
  'a b',
]
const hostile = characters.flatMap((part) => {
  const long = part.repeat(LENGTH / part.length)
  return [`${long}\0`, `a${long}\0a`]
})

/**
 * The slowest match of the pattern, ms. A busy machine may interrupt a match, so the result is the best of three tries.
 */
function slowest(pattern: RegExp, texts: readonly string[], limitMs = LIMIT_MS): number {
  let most = 0
  for (const text of texts) {
    let best = Infinity
    for (let n = 0; n < 3 && best > limitMs; n++) {
      const began = performance.now()
      pattern.lastIndex = 0
      pattern.test(text)
      best = Math.min(best, performance.now() - began)
    }
    most = Math.max(most, best)
    if (most > limitMs) break
  }
  return most
}

it('are found in the sources, and a slow pattern is detected', () => {
  expect(patterns.length).toBeGreaterThan(150)
  // 8 million ways to split these characters; each further one doubles them.
  expect(slowest(/^(?:a+)+$/, [`${'a'.repeat(23)}\0`], 10)).toBeGreaterThan(10)
})

it('match any text of 5,000 characters within 500 ms', () => {
  const slow = patterns.filter(({ pattern }) => slowest(pattern, hostile) > LIMIT_MS)
  expect(slow.map(({ path, text }) => `${path}: ${text}`)).toEqual([])
})

it('are not the only slow texts: only one function orders marks of any text', () => {
  const sources = readSources(['policy', 'device-drivers', 'edge-agent', 'cloud', 'clients', 'host', 'bin'])
  const users = sources.filter(({ text }) => /\.(?:normalize|toNormalized)\(/.test(text)).map(({ path }) => path)
  // Passwords have at most 128 characters: the schema refuses longer ones before.
  expect(users).toEqual(['policy/printable.ts', 'cloud/platform/users/passwords.ts'])
})
