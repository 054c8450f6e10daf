import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { DENY_REASONS } from '../../policy/vocabulary.ts'
import { ERROR_STATUS } from '../../cloud/platform/foundation/failure.ts'
import { readSources, ROOT } from './sources.ts'

const page = readFileSync(join(ROOT, 'docs/reference/errors.md'), 'utf8')
const sources = readSources(['policy', 'device-drivers', 'edge-agent', 'cloud'])
const text = sources.map((s) => s.text).join('\n')

function all(pattern: RegExp, from = text): string[] {
  return [...new Set([...from.matchAll(pattern)].map((m) => m[1] ?? ''))]
}

/** The members of a union of string literals, from the source text. */
function members(name: string): string[] {
  const body = new RegExp(`type ${name} =([\\s\\S]*?)\\n\\n`).exec(text)?.[1] ?? ''
  return all(/\| '([a-z_]+)'/g, body)
}

describe('docs/reference/errors.md', () => {
  it.each([
    ['reasons of refusals', all(/precondition\(\s*'([a-z_]+)'/g)],
    ['reasons in extras', all(/\{\s*reason: '([a-z_]+)'/g)],
    ['local errors', all(/\b(?:fail|refuse)\(\s*c,\s*\d{3},\s*'([a-z_-]+)'/g)],
    ['faults of fields', all(/\binvalid\((?:(?!\binvalid\(|\n\n|=>)[\s\S]){0,600}?,\s*'([a-z_]+)',?\s*\)/g)],
    [
      'exceptions',
      all(/\b(?:kind|reason): '([a-z]+_[a-z_]+)'(?:,| as)/g).filter(
        (code) =>
          !/^(not_understood|alarm_handled|delegation_returned|sale_void|sale_return|sale_piece|item_unknown|device_|token_|policy_stale|already_redeemed|limit_)/.test(
            code,
          ),
      ),
    ],
    ['faults of documents', members('DocumentErrorCode')],
    ['outcomes of commands', members('ResultCode')],
    ['faults of links', members('LinkFaultCode')],
    ['denials', [...DENY_REASONS]],
    ['errors of the API', Object.keys(ERROR_STATUS)],
  ])('lists the %s', (_, codes) => {
    expect(codes.length).toBeGreaterThan(2)
    expect(codes.filter((code) => code !== '' && !page.includes(`\`${code}\``))).toEqual([])
  })
})
