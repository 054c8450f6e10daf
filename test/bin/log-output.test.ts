// @module-tag extended
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, constants, openSync, readSync, writeSync } from 'node:fs'
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { logOutput, type LogStream } from '../../host/log.ts'
import type { Json } from '../support/cloud.ts'
import { temporaryFolder } from '../support/databases.ts'
import { bundledCommand } from '../support/bundled-command.ts'
import { runCommand } from '../support/commands.ts'
import { IS_FULL_SIZE } from '../support/full-size.ts'
import { startProcess, type RunningProcess } from '../support/processes.ts'
import { writeFileSync } from 'node:fs'

/** A stream whose reader the test controls. */
function controlledStream() {
  const waiting: { text: string; done: (error?: Error | null) => void }[] = []
  const read: string[] = []
  const stream: LogStream = {
    get writableLength() {
      return waiting.reduce((sum, { text }) => sum + text.length, 0)
    },
    write: (text, done) => void waiting.push({ text, done }),
    on: () => undefined,
  }
  const take = (error?: Error) => {
    for (const { text, done } of waiting.splice(0)) {
      if (!error) read.push(text)
      done(error)
    }
  }
  return { stream, read, take }
}

describe('the output of the log', () => {
  it('counts the lines that a full stream drops, and reports the count when the stream is read again', () => {
    const { stream, read, take } = controlledStream()
    const reports: number[] = []
    const output = logOutput(stream, (lost) => reports.push(lost))
    for (let n = 0; n < 1_100; n++) output.write('x'.repeat(1_000))
    expect(output.lost).toBe(1_100 - 1_048)
    expect(reports).toEqual([])
    take()
    expect(read).toHaveLength(1_048)
    expect(reports).toEqual([output.lost])
    output.write('later')
    take()
    expect([read.at(-1), reports]).toEqual(['later', [output.lost]])
  })

  it('counts each line that a broken stream rejects', () => {
    const { stream, take } = controlledStream()
    const reports: number[] = []
    const output = logOutput(stream, (lost) => reports.push(lost))
    for (let n = 0; n < 3; n++) output.write('x')
    take(new Error('EPIPE'))
    expect([output.lost, reports]).toEqual([3, []])
    output.write('y')
    take()
    expect(reports).toEqual([3])
  })
})

/** Unreachable devices: the agent retries them, and logs each retry. */
const UNREACHABLE = {
  devices: ['127.0.0.1:9', '192.0.2.1:502', 'no-such-host.invalid:502'].map((tcp, n) => ({
    deviceId: `dev_${n}`,
    driver: 'modbus',
    link: { tcp },
    output: 0,
  })),
}

describe.skipIf(process.platform === 'win32')('a process without a reader of its log', () => {
  let folder: string
  let cloud: RunningProcess
  let config: string

  beforeAll(async () => {
    folder = temporaryFolder('dead-reader')
    config = join(folder, 'edge.json')
    writeFileSync(config, JSON.stringify(UNREACHABLE))
    const data = join(folder, 'cloud')
    cloud = await startProcess(['cloud', '--port', '0', '--mqtt-port', '0', '--data', data])
    const made = await runCommand(['keys', 'create', '--data', data, '--account', 'Shop', '--mode', 'test', '--json'])
    const { key } = JSON.parse(made.stdout) as { key: string }
    const call = async (operation: string, body: Json): Promise<Json> =>
      (
        await fetch(`${cloud.ready['baseUrl']}/${operation}`, {
          method: 'POST',
          headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
          body: JSON.stringify(body),
        })
      ).json()
    const { stores } = await call('fetchStores', {})
    const { code } = await call('createEnrolmentCode', { storeId: stores[0].storeId, name: 'test' })
    const base = String(cloud.ready['baseUrl'])
    const edge = join(folder, 'edge')
    expect(await runCommand(['edge', 'enrol', '--cloud', base, '--code', code, '--data', edge])).toMatchObject({
      code: 0,
    })
  })
  afterAll(() => cloud?.stop())

  /** Creates a named pipe. `fill` fills its buffer. */
  function pipe(name: string) {
    const path = join(folder, name)
    execFileSync('mkfifo', [path])
    const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
    const writer = openSync(path, constants.O_WRONLY)
    return {
      writer,
      die: () => closeSync(reader),
      fill() {
        const own = openSync(path, constants.O_WRONLY | constants.O_NONBLOCK)
        try {
          for (;;) writeSync(own, 'x'.repeat(4_096))
        } catch (error) {
          expect((error as { code: string }).code).toBe('EAGAIN')
        }
        closeSync(own)
      },
      read() {
        const buffer = Buffer.alloc(1_048_576)
        return buffer.toString('utf8', 0, readSync(reader, buffer))
      },
    }
  }

  const AGENT = () => ['edge', '--data', join(folder, 'edge'), '--config', config, '--port', '0']
  const CLOUD = () => ['cloud', '--port', '0', '--mqtt-port', '0', '--data', join(folder, 'cloud-2')]

  const CASES = [
    ['an agent, the reader of stderr has died', AGENT, 'died'],
    ['an agent, stdout and stderr are full', AGENT, 'both full'],
    ['a cloud, stderr is full', CLOUD, 'full'],
    ['a cloud, the readers of stdout and stderr have died', CLOUD, 'both died'],
  ] as const
  const MORE_CASES = [
    ['an agent, stderr is full', AGENT, 'full'],
    ['an agent, the readers of stdout and stderr have died', AGENT, 'both died'],
  ] as const

  it.each(IS_FULL_SIZE ? [...CASES, ...MORE_CASES] : CASES)(
    'stops with exit code 0 within its deadline: %s',
    async (which, args, how) => {
      const name = which.replaceAll(/[^a-z]/g, '-')
      const [out, errors] = [pipe(`${name}.out`), pipe(`${name}.err`)]
      if (how === 'full' || how === 'both full') errors.fill()
      const child = spawn(process.execPath, [await bundledCommand(), ...args()], {
        env: { ...process.env, UNTAG_LOG_LEVEL: 'info' },
        stdio: ['ignore', out.writer, errors.writer],
      })
      const ended = once(child, 'exit')
      closeSync(out.writer)
      closeSync(errors.writer)
      try {
        await expect.poll(() => readSafely(out.read)).toContain('ready ')
        if (how === 'both full') out.fill()
        if (how === 'died' || how === 'both died') errors.die()
        if (how === 'both died') out.die()
        // Retries of unreachable devices write log lines all the time.
        await expect.poll(() => child.exitCode).toBe(null)
        const began = performance.now()
        child.kill('SIGTERM')
        expect(await ended).toEqual([0, null])
        expect(performance.now() - began).toBeLessThan(11_000)
      } finally {
        child.kill('SIGKILL')
      }
    },
  )
})

function readSafely(read: () => string): string {
  try {
    return read()
  } catch {
    return ''
  }
}
