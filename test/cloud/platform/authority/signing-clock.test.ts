import { join } from 'node:path'
import { beforeEach, describe, expect, it } from 'vitest'
import { realPlatform } from '../../../../host/platform.ts'
import { secretFiles } from '../../../../host/secret-files.ts'
import { openAuthority } from '../../../../cloud/platform/authority/authority.ts'
import { keysOf, loadKeyFiles } from '../../../../cloud/platform/authority/key-files.ts'
import { signingClock } from '../../../../cloud/platform/authority/key-counters.ts'
import { openDatabase } from '../../../../cloud/platform/persistence/open-database.ts'
import { markRestored } from '../../../../cloud/service/mark-restored.ts'
import { temporaryFolder } from '../../../support/databases.ts'

const NOW = 1_800_000_000_000

describe('the signing clock', () => {
  let wall: number
  let elapsed: number
  const clock = { wall: () => wall, elapsed: () => elapsed, bootId: 'boot' }
  const pass = (ms: number) => {
    wall += ms
    elapsed += ms
  }
  beforeEach(() => {
    wall = NOW
    elapsed = 5_000
  })

  it('allows signing while wall clock and elapsed time agree', () => {
    const signing = signingClock(clock, 0)
    pass(3_600_000)
    expect(signing.nowMs()).toBe(wall)
    expect(signing.untrustedReason()).toBeNull()
  })

  it('accepts wall clock changes below a minute', () => {
    const signing = signingClock(clock, 0)
    wall -= 59_000
    expect(signing.nowMs()).toBe(wall)
  })

  it.each([3_600_000, -3_600_000])(
    'forbids signing after a jump of %d ms until the clocks agree for a minute',
    (jump) => {
      const signing = signingClock(clock, 0)
      wall += jump
      expect(() => signing.nowMs()).toThrow(
        expect.objectContaining({ code: 'unavailable', extras: { reason: 'clock_untrusted', retryAfter: 60 } }),
      )
      pass(59_999)
      expect(signing.untrustedReason()).toMatch(/jumped/)
      pass(1)
      expect(signing.nowMs()).toBe(wall)
    },
  )

  it('restarts the minute when the clock jumps again', () => {
    const signing = signingClock(clock, 0)
    wall += 3_600_000
    signing.untrustedReason()
    pass(50_000)
    wall -= 3_600_000
    expect(signing.untrustedReason()).toMatch(/jumped/)
    pass(50_000)
    expect(signing.untrustedReason()).toMatch(/jumped/)
    pass(10_000)
    expect(signing.untrustedReason()).toBeNull()
  })

  it('forbids signing at start while the clock is before the last signed time', () => {
    const signing = signingClock(clock, NOW + 10_000)
    expect(signing.untrustedReason()).toMatch(/before the last time/)
    expect(() => signing.nowMs()).toThrow(/nothing is signed now/)
    pass(10_000)
    expect(signing.nowMs()).toBe(NOW + 10_000)
  })

  it('dates key sets by elapsed time after a jump, and re-signs key sets with a future date', async () => {
    const folder = temporaryFolder('signing-clock')
    const { random, timers } = realPlatform()
    const files = await loadKeyFiles(keysOf(folder), secretFiles, random)
    const database = await openDatabase({ file: join(folder, 'cloud.db') }, (failure) => {
      throw failure
    })
    const [authority, year] = [await openAuthority(database, files, { random, timers, clock }), 365 * 86_400_000]
    const keySet = async () => {
      const { jws, ver } = (await authority.ready('acc_1.test')).keySet
      const { iat } = JSON.parse(Buffer.from(jws.split('.')[1] ?? '', 'base64url').toString()) as { iat: number }
      return { ver, iat: iat * 1_000 }
    }
    const rotate = () => database.write((db) => authority.rotate(db, { iss: 'acc_1.test', use: 'token', revoke: true }))
    expect(await keySet()).toEqual({ ver: 1, iat: NOW })
    pass(10_000)
    wall += year
    await rotate()
    expect(await keySet()).toEqual({ ver: 2, iat: NOW + 10_000 })
    // After a minute the wrong time is trusted; later the clock is corrected.
    expect(authority.clock.untrustedReason()).toMatch(/jumped/)
    pass(60_000)
    await rotate()
    expect(await keySet()).toEqual({ ver: 3, iat: NOW + year + 70_000 })
    wall -= year
    expect(authority.clock.untrustedReason()).toMatch(/jumped/)
    pass(60_000)
    await database.write((db) => authority.advance(db))
    expect(await keySet()).toEqual({ ver: 4, iat: NOW + 130_000 })
    await database.write((db) => authority.advance(db))
    expect(await keySet()).toEqual({ ver: 4, iat: NOW + 130_000 })
    await database.close()
  })

  it('forbids signing while the clock is before the last restore, although the restore signed nothing', async () => {
    const folder = temporaryFolder('signing-clock')
    const { random, timers } = realPlatform()
    const platform = { random, timers, clock }
    const files = await loadKeyFiles(keysOf(folder), secretFiles, random)
    const database = await openDatabase({ file: join(folder, 'cloud.db') }, (failure) => {
      throw failure
    })
    await openAuthority(database, files, platform)
    pass(86_400_000)
    for (const _again of [1, 2])
      expect(await database.write((db) => markRestored(db, files, platform))).toMatchObject({ lastSignedMs: NOW })
    wall -= 3_600_000
    const restarted = await openAuthority(database, files, platform)
    expect(restarted.clock.untrustedReason()).toMatch(/before the last time/)
    await database.close()
  })
})
