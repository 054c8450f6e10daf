// @module-tag extended
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import type { DayRecord } from './runner/sim-day.ts'
import { chanceOf } from './simulation/virtual/chance.ts'
import { makeDayShop } from './simulation/day/day-shop.ts'
import { runDay } from './simulation/day/run-day.ts'
import { dayPlan, timetable, WHOLE_DAY } from './simulation/day/timetable.ts'
import { runSim } from '../support/sim-process.ts'

const folder = mkdtempSync(join(tmpdir(), 'untag-day-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** Size of a short day with all outages. */
const SHORT = { shoppers: 24, hours: 1 }

it('runs a store day without a violation', async () => {
  const file = join(folder, 'day.json')
  const { code, stdout, stderr } = await runSim([
    '--day',
    '--seed',
    '3',
    '--shoppers',
    '24',
    '--hours',
    '1',
    '--json',
    file,
  ])
  expect(stdout).toContain('no violation')
  expect(stderr).toContain('24 of 24 shoppers came')
  expect(code).toBe(0)
  const day = JSON.parse(readFileSync(file, 'utf8')) as DayRecord
  expect(day).toMatchObject({ kind: 'day', seed: 3, shoppers: 24, hours: 1, violations: [] })
  expect(day.unitsReleased).toBe(day.unitsSold)
  expect(day.unitsReleased).toBeGreaterThan(20)
  expect(day.offlineDecisions).toBeGreaterThan(0)
  expect(day.offline.compared).toBeGreaterThan(0)
  expect(day.offline.stricter).toBeLessThanOrEqual(0.02 * day.offline.compared)
  expect(day.alarmsOfThieves).toBeGreaterThan(0)
})

it('needs fewer staff if tills report their sales, and no paid goods alarm', async () => {
  const shop = await makeDayShop(existsSync('/dev/shm') ? '/dev/shm' : tmpdir())
  try {
    const reported = await runDay(shop, { seed: 3, ...SHORT, shoppers: 16, tills: 'reported' })
    expect(reported.violations).toEqual([])
    expect(reported.tally.unitsOfTills).toBeGreaterThan(15)
    expect(reported.tally.needlessAlarms).toBe(0)
    const silent = await runDay(shop, { seed: 3, ...SHORT, shoppers: 16, tills: 'silent' })
    expect(silent.tally.needlessAlarms).toBeGreaterThan(8)
    expect(silent.tally.staffCalls - reported.tally.staffCalls).toBe(silent.tally.needlessAlarms)
  } finally {
    shop.remove()
  }
})

it('reports a gate without a reader when thieves pass it', async () => {
  const shop = await makeDayShop(existsSync('/dev/shm') ? '/dev/shm' : tmpdir())
  try {
    // Without its reader the gate reads no tags.
    const blind = {
      ...shop,
      agents: shop.agents.map((agent) => ({
        ...agent,
        config: { ...agent.config, devices: agent.config.devices.filter(({ driver }) => driver !== 'llrp') },
      })),
    }
    const { violations } = await runDay(blind, { seed: 3, ...SHORT })
    expect(violations[0]?.detail).toMatch(/carried \d unpaid goods out, but only 0 alarmed/)
  } finally {
    shop.remove()
  }
})

it('lets most shoppers come after work, and none after the last entry', () => {
  const plan = dayPlan(WHOLE_DAY.hours)
  const people = timetable(5_000, plan, chanceOf(1))
  const inHour = (n: number) => people.filter(({ comesMs }) => Math.floor(comesMs / 3_600_000) === n).length
  expect(people).toHaveLength(5_000)
  expect(Math.max(...people.map(({ comesMs }) => comesMs))).toBeLessThanOrEqual(plan.lengthMs - 20 * 60_000)
  expect(inHour(9)).toBeGreaterThan(2 * inHour(0))
  for (const kind of ['buyer', 'thief', 'declined', 'changes-mind'] as const)
    expect(people.some((shopper) => shopper.kind === kind)).toBe(true)
})
