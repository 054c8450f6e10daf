import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { findingMessage, validationFindings } from '../../policy/validation-findings.ts'

function messageOf(schema: z.ZodType, value: unknown): string | undefined {
  const read = z.object({ name: schema }).safeParse({ name: value })
  const [finding] = validationFindings(read.error?.issues ?? [], { name: value })
  return finding && findingMessage(finding)
}

describe('messages about wrong input', () => {
  it.each<[z.ZodType, unknown, string]>([
    [z.string().max(120), 'x'.repeat(130), 'must have at most 120 characters'],
    [z.string().max(1), 'xx', 'must have at most 1 character'],
    [z.string().min(12), 'x', 'must have at least 12 characters'],
    [z.string().min(1), '', 'must not be empty'],
    [z.string().length(3), 'x', 'must have exactly 3 characters'],
    [z.array(z.string()).max(2), ['a', 'b', 'c'], 'must have at most 2 entries'],
    [z.array(z.string()).min(1), [], 'must not be empty'],
    [z.number().max(5), 7, 'must be at most 5'],
    [z.number().gt(1), 0, 'must be more than 1'],
    [z.int(), 1.5, 'must be a whole number'],
    [z.int(), 1e30, 'must be at most 9007199254740991'],
    [z.number().multipleOf(0.01), 0.001, 'must be a multiple of 0.01'],
    [z.number(), 'x', 'must be a number, not a text'],
    [z.string(), null, 'must be a text, not null'],
    [z.number(), Number.NaN, 'must be a number, not NaN'],
    [z.boolean(), 1, 'must be true or false, not a number'],
    [z.strictObject({}), [], 'must be an object, not a list'],
    [z.enum(['a', 'b']), 'c', 'must be "a" or "b"'],
    [z.literal('x'), 'c', 'must be "x"'],
    [z.string().regex(/^a$/), 'b', 'must match the pattern /^a$/'],
    [z.string().startsWith('a'), 'b', 'must begin with "a"'],
    [z.email(), 'b', 'must be an e-mail address such as name@shop.example'],
    [z.iso.datetime(), 'b', 'must be a time such as 2026-11-30T12:00:00Z'],
    [z.string().max(3, 'takes three letters'), 'long', 'takes three letters'],
  ])('are sentences of ours, never of the library: %#', (schema, value, expected) => {
    expect(messageOf(schema, value)).toBe(`name: ${expected}`)
  })

  it('name the field of a wrong key, and what is missing', () => {
    const names = z.record(z.string().max(1), z.number())
    expect(messageOf(names, { abc: 1 })).toBe('name.abc: this name must have at most 1 character')
    expect(messageOf(z.string(), undefined)).toBe('name is missing: expected a text')
  })
})
