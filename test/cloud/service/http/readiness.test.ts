import { readdirSync, rmSync } from 'node:fs'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { probeDisk } from '../../../../host/replace-file.ts'
import { readiness, type ReadinessParts } from '../../../../cloud/platform/foundation/readiness.ts'
import { virtualPlatform, type VirtualPlatform } from '../../../verification/simulation/virtual/virtual-platform.ts'
import { newDatabase, temporaryFolder, type TestDatabase } from '../../../support/databases.ts'

describe('readiness of the cloud', () => {
  let db: TestDatabase
  let platform: VirtualPlatform
  let isListening: boolean

  beforeEach(async () => {
    db = await newDatabase('sqlite')
    platform = virtualPlatform()
    isListening = true
  })
  afterEach(async () => {
    await db.database.close()
    await db.remove()
  })

  const readinessOf = (parts: Partial<ReadinessParts> = {}) =>
    readiness({
      platform,
      reads: db.database.reads,
      authority: authority(null),
      probeDisk: () => Promise.resolve(),
      isBrokerListening: () => isListening,
      ...parts,
    })

  it('reports nothing if all parts work', async () => {
    expect(await platform.settle(readinessOf().check())).toEqual([])
  })

  it('reports each part that does not work, with the reason', async () => {
    isListening = false
    const ready = readinessOf({
      authority: authority('the clock has jumped'),
      probeDisk: () => Promise.reject(new Error('ENOSPC: no space left on device, write')),
    })
    expect(await platform.settle(ready.check())).toEqual([
      { check: 'disk', reason: 'ENOSPC: no space left on device, write' },
      { check: 'clock', reason: 'the clock has jumped' },
      { check: 'broker', reason: 'the broker does not listen' },
    ])
  })

  it('reports a process that will stop at once', async () => {
    const ready = readinessOf()
    expect(await platform.settle(ready.check())).toEqual([])
    ready.leave()
    expect(await platform.settle(ready.check())).toEqual([{ check: 'process', reason: 'it is stopping' }])
  })

  it('waits at most 2 s for a part that hangs', async () => {
    const result = readinessOf({ probeDisk: () => new Promise(() => undefined) }).check()
    expect(await platform.settle(result, 2_000)).toEqual([{ check: 'disk', reason: 'did not answer within 2 s' }])
  })

  it('shares one result for a second, and then checks again', async () => {
    const ready = readinessOf()
    expect(await platform.settle(ready.check())).toEqual([])
    isListening = false
    expect(await platform.settle(ready.check())).toEqual([])
    await platform.advance(1_000)
    expect(await platform.settle(ready.check())).toMatchObject([{ check: 'broker' }])
  })
})

describe('the check of the data folder', () => {
  it('leaves no file behind, and fails if the folder does not exist', async () => {
    const folder = temporaryFolder('probe')
    await probeDisk(folder)
    expect(readdirSync(folder)).toEqual([])
    rmSync(folder, { recursive: true })
    await expect(probeDisk(folder)).rejects.toThrow('ENOENT')
  })
})

function authority(untrusted: string | null): ReadinessParts['authority'] {
  return {
    clock: { untrustedReason: () => untrusted },
    freshnessSigner: { kid: 'k' },
  } as unknown as ReadinessParts['authority']
}
