import { EventEmitter } from 'node:events'
import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { describe, expect, test } from 'vitest'
import { openPcscChild } from '../../device-drivers/transports/pcsc-library/child-link.ts'
import { ROOT } from '../house/sources.ts'
import { forEver } from './workbench.ts'

/** Hides `nfc-pcsc` from `require`, because a developer may have installed it. */
const WITHOUT_PACKAGE = `data:text/javascript,${encodeURIComponent(`
  import Module from 'node:module'
  const resolve = Module._resolveFilename
  Module._resolveFilename = (name, ...more) =>
    name === 'nfc-pcsc' ? resolve(name, undefined, false, { paths: ['/'] }) : resolve(name, ...more)
`)}`

/** A child process that the test controls. */
function fakeChild() {
  const killed: string[] = []
  const [stdin, stdout, stderr] = [new PassThrough(), new PassThrough(), new PassThrough()]
  const child = Object.assign(new EventEmitter(), {
    stdin,
    stdout,
    stderr,
    kill(signal: string) {
      killed.push(signal)
      queueMicrotask(() => child.end(null, signal))
      return true
    },
    end(code: number | null, signal: string | null = null) {
      stdout.end()
      child.emit('close', code, signal)
    },
  })
  return { child, killed, start: () => child as unknown as ChildProcess }
}

describe('the process that loads nfc-pcsc', () => {
  test('becomes a link when it reports ready, and is killed when the link closes', async () => {
    const { child, killed, start } = fakeChild()
    const opening = openPcscChild(start, forEver())
    child.stderr.write('(node:1) Warning: something\nready\n')
    const link = await opening
    await link.write(Uint8Array.of(1, 2), forEver())
    expect([...(child.stdin.read() as Buffer)]).toEqual([1, 2])
    child.stdout.write(Uint8Array.of(3))
    for await (const chunk of link.bytes) {
      expect([...chunk]).toEqual([3])
      break
    }
    await link.close()
    expect(killed).toEqual(['SIGKILL'])
    await expect(link.write(Uint8Array.of(1), forEver())).rejects.toMatchObject({ code: 'lost' })
  })

  test('reports its last line if it ends at once or cannot start', async () => {
    const missing = fakeChild()
    const opening = openPcscChild(missing.start, forEver())
    missing.child.stderr.write('the package nfc-pcsc cannot be loaded (not installed)\n')
    await new Promise(setImmediate)
    missing.child.end(1)
    await expect(opening).rejects.toMatchObject({
      code: 'missing',
      message: expect.stringMatching(/^the package nfc-pcsc cannot be loaded/),
    })

    const none = fakeChild()
    const failing = openPcscChild(none.start, forEver())
    none.child.emit('error', new Error('spawn ENOENT'))
    await expect(failing).rejects.toThrow('the process for smart cards cannot be started (spawn ENOENT)')
  })

  test('breaks the link and names the signal when it crashes', async () => {
    const { child, start } = fakeChild()
    const opening = openPcscChild(start, forEver())
    child.stderr.write('ready\n')
    const link = await opening
    child.end(null, 'SIGSEGV')
    const reading = (async () => {
      for await (const _ of link.bytes);
    })()
    await expect(reading).rejects.toMatchObject({
      code: 'lost',
      message: 'the process for smart cards ended (SIGSEGV)',
    })
  })

  test('is killed if it is not ready in time', async () => {
    const { killed, start } = fakeChild()
    const limit = new AbortController()
    const opening = openPcscChild(start, limit.signal)
    limit.abort()
    await expect(opening).rejects.toMatchObject({
      code: 'unreachable',
      message: 'the smart-card service does not answer; is it running?',
    })
    expect(killed).toEqual(['SIGKILL'])
  })

  test('buffers at most 64 KiB if it reads nothing', async () => {
    const { child, start } = fakeChild()
    const opening = openPcscChild(start, forEver())
    child.stderr.write('ready\n')
    const link = await opening
    const writes = Array.from({ length: 200 }, () => link.write(new Uint8Array(1_024), forEver()))
    const results = await Promise.race([
      Promise.allSettled(writes.slice(150)),
      new Promise((resolve) => setImmediate(resolve, null)),
    ])
    expect(results).toContainEqual(
      expect.objectContaining({
        status: 'rejected',
        reason: expect.objectContaining({ message: 'the process for smart cards reads nothing' }),
      }),
    )
    writes.forEach((write) => write.catch(() => {}))
    await link.close()
  })

  test('names the package if it is not installed, as a real process', async () => {
    const start = () =>
      spawn(process.execPath, ['--import', WITHOUT_PACKAGE, join(ROOT, 'dist/host/pcsc-child.js')], { stdio: 'pipe' })
    await expect(openPcscChild(start, forEver())).rejects.toMatchObject({
      code: 'missing',
      message: expect.stringMatching(
        /nfc-pcsc cannot be loaded \(not installed\); run npm install --no-save -P nfc-pcsc/,
      ),
    })
  })
})
