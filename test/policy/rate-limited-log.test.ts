import { expect, it } from 'vitest'
import { rateLimitedLog, LINES_PER_MINUTE } from '../../policy/rate-limited-log.ts'
import { virtualPlatform } from '../verification/simulation/virtual/virtual-platform.ts'

function open() {
  const world = virtualPlatform({ startMs: 0 })
  const lines: string[] = []
  const log = rateLimitedLog((fields, message) => void lines.push(`${message} ${JSON.stringify(fields)}`), world)
  return { world, lines, log }
}

it('writes ten lines per minute and message, and then the last line with the number of those before it', async () => {
  const { world, lines, log } = open()
  for (let n = 0; n < 3_000; n++) log.write({ n }, 'a connection was cut')
  log.write({}, 'a login was refused')
  expect(lines).toHaveLength(LINES_PER_MINUTE + 1)
  expect(lines[0]).toBe('a connection was cut {"n":0}')
  await world.advance(60_000)
  expect(lines.slice(LINES_PER_MINUTE + 1)).toEqual(['a connection was cut {"n":2999,"suppressed":2989}'])
  log.write({ n: 'again' }, 'a connection was cut')
  expect(lines.at(-1)).toBe('a connection was cut {"n":"again"}')
})

it('counts each device separately', async () => {
  const { world, lines, log } = open()
  for (let n = 0; n < 50; n++) log.write({ deviceId: 'dev_a' }, 'a device reported', 'dev_a')
  log.write({ deviceId: 'dev_b' }, 'a device reported', 'dev_b')
  expect(lines.at(-1)).toBe('a device reported {"deviceId":"dev_b"}')
  await world.advance(60_000)
  expect(lines.at(-1)).toBe('a device reported {"deviceId":"dev_a","suppressed":39}')
})

it('counts further keys together after a hundred', () => {
  const { lines, log } = open()
  for (let n = 0; n < 1_000; n++) log.write({}, 'refused', `key ${n}`)
  expect(lines).toHaveLength(100 + LINES_PER_MINUTE)
  log.stop()
  expect(lines.at(-1)).toBe(`refused {"suppressed":${899 - LINES_PER_MINUTE}}`)
})

it('writes the last lines when the log stops', () => {
  const { lines, log } = open()
  for (let n = 0; n < 12; n++) log.write({}, 'refused')
  log.stop()
  expect(lines.at(-1)).toBe('refused {"suppressed":1}')
})
