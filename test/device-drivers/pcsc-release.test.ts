import { describe, expect, test } from 'vitest'
import { hex } from '../../device-drivers/pcsc/protocol/apdu.ts'
import { easFrame } from '../../device-drivers/pcsc/protocol/icode-eas.ts'
import { PCSC_BODIES, type PcscCommand } from '../../device-drivers/pcsc/protocol/messages.ts'
import { icode, plainTag, storageAtr } from '../../simulators/devices/nfc-tags.ts'
import { PcscdSimulator } from '../../simulators/devices/pcsc.ts'
import { describeDriver } from './conformance.ts'
import { pcscBench, READER } from './pcsc-bench.ts'

const ICODE = 'E00401500A1B2C3D'
const EAS_RESET = hex(easFrame('reset', ICODE))
const classic = (uid = '9A3B7C11') => plainTag(storageAtr(0x03, 0x0001), uid)

describeDriver('pcsc', {
  entry: { link: { pcsc: 'acr1552' } },
  muteIs: 'absent',
  // The driver requests a status at least every 10 s, and allows 2 s for the answer.
  noticedWithinMs: 15_000,
  release: { kind: 'release', tag: { tagUid: ICODE } },
  device(platform) {
    const pcscd = new PcscdSimulator({ platform })
    pcscd.plug(READER)
    let stirred = 0
    let tag = icode(ICODE, { transparent: true })
    return {
      serve: pcscd.serve,
      mute: () => void (pcscd.faults.mute = new Set(Object.keys(PCSC_BODIES) as PcscCommand[])),
      heal: () => void (pcscd.faults.mute = new Set()),
      stir: () => pcscd.put(READER, classic(`0100${(++stirred).toString(16).padStart(4, '0')}`.toUpperCase())),
      leave: () => pcscd.take(READER),
      fits: (event) => event.type === 'tags' && event.reads.some(({ technology }) => technology === 'MifareClassic'),
      prepare() {
        tag = icode(ICODE, { transparent: true })
        pcscd.put(READER, tag)
      },
      releases: () => tag.log.filter((apdu) => apdu.includes(EAS_RESET)).length,
      loseAnswer() {
        tag = icode(ICODE, { transparent: true, resetFault: 'no-answer-done' })
        pcscd.put(READER, tag)
      },
    }
  },
})

async function ready(options: Parameters<typeof pcscBench>[0] = {}) {
  const bench = pcscBench(options)
  await bench.untilReady()
  return bench
}

describe('pcsc: release switches the EAS bit of a tag off', () => {
  const withTag = async (options: Parameters<typeof icode>[1]) => {
    const bench = await ready()
    const tag = icode(ICODE, { transparent: true, ...options })
    bench.pcscd.put(READER, tag)
    await bench.news()
    return { ...bench, tag }
  }

  test('confirms by the tag’s answer, and reports the tag only once', async () => {
    const { release, tag, news } = await withTag({})
    expect(await release(ICODE)).toEqual({
      outcome: 'confirmed',
      commanded: true,
      detail: 'acknowledged: the tag has switched its EAS bit off',
    })
    expect(tag.eas).toBe(false)
    expect(tag.log.filter((apdu) => apdu.includes('22A304'))).toHaveLength(1)
    expect(tag.log.at(-1)).not.toContain('22A304')
    expect(await news()).toEqual([])
  })

  test.each([
    [
      'a reader without transparent sessions',
      { transparent: false },
      'failed',
      false,
      /^not_supported: this reader passes no commands/,
      true,
    ],
    ['a locked bit', { locked: true }, 'failed', true, /^refused: the EAS bit is locked/, true],
    ['no answer, but done', { resetFault: 'no-answer-done' }, 'unknown', true, /^answer_lost/, false],
    [
      'no answer, and it still alarms',
      { resetFault: 'no-answer-undone' },
      'failed',
      true,
      /^no_confirmation: the EAS bit of the tag is still on/,
      true,
    ],
    [
      'no answer, as some readers tell it, but done',
      { resetFault: 'no-answer-done', reportsOutside: true },
      'unknown',
      true,
      /^answer_lost/,
      false,
    ],
    [
      'no answer, as some readers tell it, and it still alarms',
      { resetFault: 'no-answer-undone', reportsOutside: true },
      'failed',
      true,
      /^no_confirmation/,
      true,
    ],
    ['it says done and still alarms', { resetFault: 'says-done-undone' }, 'failed', true, /^no_confirmation/, true],
    [
      'pcscd says no more',
      { resetFault: 'silent' },
      'unknown',
      true,
      /^answer_lost: pcscd does not answer transmit/,
      true,
    ],
  ] as const)('%s', async (_, options, outcome, commanded, detail, eas) => {
    const { release, tag } = await withTag(options)
    expect(await release(ICODE)).toEqual({ outcome, commanded, detail: expect.stringMatching(detail) })
    expect(tag.eas).toBe(eas)
  })

  test('commands nothing without the right tag', async () => {
    const { release, tag, pcscd, news } = await withTag({})
    expect(await release()).toMatchObject({
      outcome: 'failed',
      commanded: false,
      detail: expect.stringMatching(/^not_supported/),
    })
    expect(await release('E00401500A1B2C3E')).toMatchObject({
      commanded: false,
      detail: 'not_ready: the tag E00401500A1B2C3E is not on the reader',
    })
    const given = new AbortController()
    given.abort()
    expect(await release(ICODE, given.signal)).toMatchObject({ commanded: false, detail: 'cancelled' })
    pcscd.put(READER, classic())
    await news()
    expect(await release('9A3B7C11')).toMatchObject({
      commanded: false,
      detail: expect.stringMatching(/^not_supported: the tag 9A3B7C11 has no EAS bit/),
    })
    pcscd.unplug(READER)
    await news()
    expect(await release(ICODE)).toMatchObject({
      outcome: 'failed',
      commanded: false,
      detail: expect.stringMatching(/^not_ready/),
    })
    expect(tag.eas).toBe(true)
  })

  test('handles a tag that is removed, and a pcscd that dies, meanwhile', async () => {
    const { supervisor, pcscd, port, tag, world } = await withTag({})
    const release = () =>
      supervisor.execute('pad', { kind: 'release', tag: { tagUid: ICODE } }, new AbortController().signal)
    const taken = release()
    pcscd.take(READER)
    expect(await world.settle(taken)).toMatchObject({
      outcome: 'failed',
      commanded: false,
      detail: expect.stringMatching(/^not_ready/),
    })
    pcscd.put(READER, tag)
    await world.advance(1_000)
    const dying = release()
    port.unplug()
    expect(await world.settle(dying)).toMatchObject({ outcome: 'failed', commanded: false })
    expect(tag.eas).toBe(true)
  })
})
