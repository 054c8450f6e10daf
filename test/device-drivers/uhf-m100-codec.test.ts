import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { m100Codec, MAX_M100_PARAMETERS } from '../../device-drivers/uhf-m100/protocol/frame.ts'
import type { M100Frame } from '../../device-drivers/uhf-m100/protocol/frame.ts'
import {
  applySelection,
  changeEas,
  decodeTag,
  killTag,
  M100,
  m100Command,
  pollMany,
  refusalOf,
  refusalText,
  selectTag,
  setPower,
  tagOfAnswer,
} from '../../device-drivers/uhf-m100/protocol/messages.ts'
import { describeCodec } from './codec-conformance.ts'

const hex = (text: string) => Uint8Array.from(Buffer.from(text.replaceAll(' ', ''), 'hex'))
const EPC = '30751FEB705C5904E3D50D70'

// Frames of the M100 & QM100 firmware manual, as M5Stack's page of the UHF-RFID unit (U107) and its protocol paper
// print them.
describe('golden commands', () => {
  test.each<[string, string, M100Frame]>([
    ['hardware version', 'BB 00 03 00 01 00 04 7E', m100Command(M100.information, [0])],
    ['software version', 'BB 00 03 00 01 01 05 7E', m100Command(M100.information, [1])],
    ['one poll', 'BB 00 22 00 00 22 7E', m100Command(M100.poll)],
    ['10,000 polls', 'BB 00 27 00 03 22 27 10 83 7E', pollMany(10_000)],
    ['65,535 polls', 'BB 00 27 00 03 22 FF FF 4A 7E', pollMany(65_535)],
    ['stop', 'BB 00 28 00 00 28 7E', m100Command(M100.stop)],
    ['region China 900', 'BB 00 07 00 01 01 09 7E', m100Command(M100.setRegion, [1])],
    ['select', `BB 00 0C 00 13 01 00 00 00 20 60 00 ${EPC} AD 7E`, selectTag(EPC)],
    ['kill', 'BB 00 65 00 04 00 00 FF FF 67 7E', killTag('0000FFFF')],
    ['20 dBm', 'BB 00 B6 00 02 07 D0 8F 7E', setPower(20)],
    // Published bring-up of a YRM100; its answer has the code of Set Select.
    ['select mode 2', 'BB 00 12 00 01 02 15 7E', applySelection()],
    ['power', 'BB 00 B7 00 00 B7 7E', m100Command(M100.getPower)],
    ['EAS bit on', 'BB 00 E3 00 05 00 00 FF FF 01 E7 7E', changeEas('0000FFFF', true)],
  ])('%s', (_, bytes, frame) => {
    expect(m100Codec('host').encode(frame)).toEqual(hex(bytes))
    expect(m100Codec('reader').push(hex(bytes))).toEqual([frame])
  })
})

describe('golden answers', () => {
  const one = (bytes: string): M100Frame => {
    const [frame] = m100Codec('host').push(hex(bytes))
    if (!frame) throw new Error('no frame')
    return frame
  }

  test.each([`BB 02 22 00 11 C9 34 00 ${EPC} 3A 76 EF 7E`])('decodes a tag: %s', (bytes) => {
    expect(decodeTag(one(bytes))).toEqual({ epc: EPC, rssiDbm: -55 })
  })

  test('decodes a tag of an R200', () => {
    // A reader log in public code for the R200.
    expect(decodeTag(one('BB 02 22 00 11 C4 30 00 E2 00 00 1D 73 15 01 65 21 40 8F C6 B8 3E C2 7E'))).toEqual({
      epc: 'E200001D7315016521408FC6',
      rssiDbm: -60,
    })
  })

  test('decodes no tag, stopped, power and killed', () => {
    expect(refusalOf(one('BB 01 FF 00 01 15 16 7E'))).toBe(0x15)
    expect(one('BB 01 28 00 01 00 2A 7E')).toMatchObject({ type: 'answer', command: M100.stop })
    expect(one('BB 01 B7 00 02 07 D0 91 7E').parameters).toEqual(hex('07D0'))
    expect(tagOfAnswer(one(`BB 01 65 00 10 0E 34 00 ${EPC} 00 C5 7E`))).toBe(EPC)
    expect(tagOfAnswer(one('BB 01 E3 00 10 0E 30 00 30 75 1F EB 70 5C 59 04 E3 D5 0D 70 00 3F 7E'))).toBe(EPC)
  })

  test('names refusals', () => {
    expect(refusalText(0x16)).toBe('error 16 (wrong access password)')
    expect(refusalText(0xd4)).toBe('error D4 (the tag refuses: kill, code 4)')
    expect(refusalText(0x77)).toBe('error 77 (unknown)')
  })

  test('rejects notices without a tag', () => {
    const notice = (parameters: string): M100Frame => ({
      type: 'notice',
      command: M100.poll,
      parameters: hex(parameters),
    })
    for (const bad of ['', 'C9 34 00 3A 76', 'C9 34 00 30 3A 76', '00'.repeat(80)])
      expect(decodeTag(notice(bad))).toBeNull()
    for (const bad of ['', '0E 34 00', '02 34 00', '00'])
      expect(tagOfAnswer({ ...notice(bad), type: 'answer' as const })).toBeNull()
  })
})

const parameters = fc.uint8Array({ maxLength: MAX_M100_PARAMETERS })
describeCodec<M100Frame>('M100', {
  make: () => m100Codec('host'),
  frames: fc.record({
    type: fc.constantFrom('answer' as const, 'notice' as const),
    command: fc.integer({ min: 0, max: 255 }),
    parameters,
  }),
  sample: (n) => ({
    type: 'notice',
    command: M100.poll,
    parameters: hex(`C9 34 00 ${EPC} ${n.toString(16).padStart(2, '0')} 76`),
  }),
  mostHeld: MAX_M100_PARAMETERS + 7,
  begin: 0xbb,
})
