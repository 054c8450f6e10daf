import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { afterEach, describe, expect, it } from 'vitest'
import { deleteObsolete, obsoleteBackups, type StoredBackup, startSchedule } from '../../host/backup/retention.ts'
import { withDatabase } from '../../host/known-database.ts'
import { temporaryFolder } from '../support/databases.ts'
import { eventually } from '../support/journey.ts'
import { runProcess, startProcess } from '../support/processes.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR
const NOW = Date.parse('2026-11-23T12:00:00.000Z')

const made = (name: string, ageMs: number, isComplete = true): StoredBackup => ({
  name,
  madeMs: NOW - ageMs,
  isComplete,
})
const BACKUPS = [
  made('running', HOUR, false),
  made('today', 2 * HOUR),
  made('abandoned', 25 * HOUR, false),
  made('yesterday', 26 * HOUR),
  made('last week', 7 * DAY),
  made('last month', 30 * DAY),
]

describe('the retention of backups', () => {
  it.each([
    [{ keep: 0, keepDays: 0 }, []],
    [{ keep: 2, keepDays: 0 }, ['last week', 'last month', 'abandoned']],
    [{ keep: 0, keepDays: 7 }, ['last month', 'abandoned']],
    [{ keep: 1, keepDays: 7 }, ['last month', 'abandoned']],
    [{ keep: 3, keepDays: 1 }, ['last month', 'abandoned']],
    [{ keep: 9, keepDays: 1 }, ['abandoned']],
  ])('%j deletes %j', (retention, names) => {
    expect(obsoleteBackups(BACKUPS, retention, NOW).map(({ name }) => name)).toEqual(names)
  })

  it('never deletes the newest complete backup, however old it is', () => {
    expect(obsoleteBackups([made('only', 90 * DAY)], { keep: 0, keepDays: 1 }, NOW)).toEqual([])
  })

  it('deletes only folders that untag backup named', () => {
    const folder = temporaryFolder('retention')
    const add = (name: string, isComplete = true) => {
      mkdirSync(join(folder, name))
      if (isComplete) writeFileSync(join(folder, name, 'backup.json'), '{}')
    }
    add('untag-2026-11-20T09-00-00-000Z')
    add('untag-2026-11-19T09-00-00-000Z')
    add('untag-2026-11-18T09-00-00-000Z.partial', false)
    for (const name of ['untag-old', 'photos', 'untag-2026-99-18T09-00-00-000Z', 'untag-2026-11-01T09-00-00-000Z.old'])
      add(name)
    expect(deleteObsolete(folder, { keep: 1, keepDays: 0 }, NOW)).toEqual([
      'untag-2026-11-19T09-00-00-000Z',
      'untag-2026-11-18T09-00-00-000Z.partial',
    ])
    expect(readdirSync(folder)).toHaveLength(5)
    rmSync(folder, { recursive: true })
  })
})

describe('the schedule of backups', () => {
  function schedule(newestMs: number | undefined, results: readonly ('made' | 'failed')[]) {
    const tasks: { ms: number; task: () => void }[] = []
    const failures: string[] = []
    const left = [...results]
    let nowMs = NOW
    let newest = newestMs
    const stop = startSchedule({
      everyMs: 24 * HOUR,
      clock: { wall: () => nowMs },
      timers: {
        after(ms, task) {
          const timer = { ms, task }
          tasks.push(timer)
          return () => void tasks.splice(tasks.indexOf(timer), 1)
        },
      },
      newest: () => newest,
      async backUp() {
        if (left.shift() === 'failed') throw new Error('disk full')
        newest = nowMs
        nowMs += HOUR
      },
      onFailure: (error, retryMs) => failures.push(`${String(error)}, again in ${retryMs / 60_000} minutes`),
    })
    /** Waits for the next timer and runs it. Returns its delay in hours. */
    const tick = async () => {
      const next = tasks.shift()
      nowMs += next?.ms ?? 0
      next?.task()
      await setImmediate()
      return next && next.ms / HOUR
    }
    return { tick, failures, stop }
  }

  it('makes the first backup at once, and the next one a period after the start of the last one', async () => {
    const { tick } = schedule(undefined, [])
    expect([await tick(), await tick(), await tick()]).toEqual([0, 23, 23])
  })

  it.each([
    ['the rest of the period after a restart', NOW - 20 * HOUR, 4],
    ['not at all if a backup was missed', NOW - 99 * HOUR, 0],
    ['at most one period after the clock was set back', NOW + 99 * HOUR, 24],
  ])('waits %s', async (_case, newest, hours) => {
    expect(await schedule(newest, []).tick()).toBe(hours)
  })

  it('reports a failed backup, and repeats it after 15 minutes', async () => {
    const { tick, failures } = schedule(undefined, ['failed', 'made'])
    expect([await tick(), await tick(), await tick()]).toEqual([0, 0.25, 23])
    expect(failures).toEqual(['Error: disk full, again in 15 minutes'])
  })

  it('ends without another backup', async () => {
    const { tick, stop } = schedule(undefined, [])
    await tick()
    await stop()
    expect(await tick()).toBeUndefined()
  })
})

describe('untag backup, as a process', () => {
  const folder = temporaryFolder('backup-schedule')
  afterEach(() => rmSync(folder, { recursive: true, force: true }))

  it('reports a failure, continues, and keeps the number of backups that --keep names', async () => {
    const [data, to] = [join(folder, 'cloud'), join(folder, 'backups')]
    const place = ['--data', data, '--to', to]
    const failing = await startProcess(['backup', '--every', '24', ...place])
    await eventually('the report', async () => failing.stderr().includes('Next attempt in 15 minutes'))
    expect(failing.stderr()).toMatch(/the backup failed: .*cloud\.db does not exist/)
    expect(await failing.stop()).toBe(0)

    mkdirSync(data)
    await withDatabase({ data, databaseUrl: undefined }, async () => undefined)
    const first = await runProcess(['backup', ...place])
    expect(first.code).toBe(0)
    const second = await runProcess(['backup', '--keep', '1', ...place])
    expect(second.stderr).toContain(`deleted ${first.stdout.trim()}\n`)
    expect(readdirSync(to).map((name) => join(to, name))).toEqual([second.stdout.trim()])
  })
})
