import { describe, expect, test } from 'vitest'
import { killTag, type TagAccess } from '../../device-drivers/llrp/tag-access.ts'
import { easOfChip, MESSAGES } from '../../device-drivers/llrp/protocol/messages.ts'
import { parameter } from '../../device-drivers/llrp/protocol/elements.ts'
import type { SimulatedTag } from '../../simulators/devices/llrp/reader-state.ts'
import { EPC, gateBench } from './gate-bench.ts'
import { RELEASE } from './workbench.ts'

const ORDER = { kind: 'release', tag: { epc: EPC } } as const
const OTHER = 'AA'.repeat(12)

/** A gate that kills tags or switches their EAS off, and a tag EPC with this memory. */
function tagBench(gate: Record<string, unknown>, tag: SimulatedTag = {}) {
  const bench = gateBench({ gate, reader: { tags: new Map([[EPC, tag]]) } })

  /** Starts a release. The tag is read again and again while `stays` returns true. */
  async function release(stays: () => boolean = () => true, order: Parameters<typeof bench.execute>[0] = ORDER) {
    let commandResult: Awaited<ReturnType<typeof bench.execute>> | undefined
    const releasing = bench.execute(order)
    void releasing.then((result) => (commandResult = result))
    for (let waited = 0; commandResult === undefined && waited < 30_000; waited += 50) {
      await bench.world.advance(50)
      bench.reader.see(OTHER)
      if (stays()) bench.reader.see(EPC)
    }
    return bench.world.settle(releasing)
  }

  return {
    ...bench,
    tag,
    release,
    looks: () => bench.reader.received.filter((name) => name === 'ENABLE_ACCESSSPEC').length,
  }
}

describe('killing a tag', () => {
  const kill = { kill: { password: '12AB34CD' } }
  const mortal: SimulatedTag = { killPassword: '12AB34CD' }

  test('kills a tag in the field with the right password', async () => {
    const bench = tagBench(kill, mortal)
    await bench.untilReady()
    expect(await bench.release()).toEqual({
      outcome: 'confirmed',
      commanded: true,
      detail: 'acknowledged: the tag is dead',
    })
    const before = bench.reads().length
    bench.reader.see(EPC)
    await bench.world.advance(10)
    expect(bench.reads()).toHaveLength(before)
  })

  test.each<[string, SimulatedTag, string]>([
    ['without a password', {}, 'refused: the tag has kill password zero'],
    ['with another', { killPassword: '00000001' }, 'refused: the tag refused'],
  ])('fails: %s', async (_, tag, detail) => {
    const bench = tagBench(kill, tag)
    await bench.untilReady()
    expect(await bench.release()).toMatchObject({
      outcome: 'failed',
      commanded: true,
      detail: expect.stringContaining(detail),
    })
  })

  test.each([
    [1, 'failed'],
    [2, 'failed'],
    [3, 'failed'],
    [4, 'unknown'],
    [5, 'unknown'],
  ])('maps result %i of the reader: %s', async (Result, outcome) => {
    const access: TagAccess = {
      run: async () => ({ kind: 'results', results: [parameter('C1G2KillOpSpecResult', { Result, OpSpecID: 1 })] }),
    }
    expect(await killTag(access, EPC, '12AB34CD', new AbortController().signal)).toMatchObject({
      outcome,
      commanded: true,
    })
  })

  test('reports unknown for a tag that does not come, and does not kill it later', async () => {
    const bench = tagBench(kill, mortal)
    await bench.untilReady()
    expect(await bench.world.settle(bench.execute(ORDER))).toMatchObject({ outcome: 'unknown', commanded: true })
    bench.reader.see(EPC)
    bench.reader.see(EPC)
    await bench.world.advance(10)
    expect(bench.reads()).toHaveLength(2)
  })

  test('deletes an order whose answer is lost, and executes the next one on the same connection', async () => {
    const bench = tagBench(kill, mortal)
    await bench.untilReady()
    bench.reader.faults.on({ kind: 'mute', functions: [MESSAGES.ADD_ACCESSSPEC.type], times: 1 })
    expect(await bench.release()).toMatchObject({ outcome: 'failed', commanded: false })
    expect(await bench.release()).toMatchObject({ outcome: 'confirmed' })
    expect(bench.port.opened).toBe(1)
  })

  test('ends the connection if an order cannot be deleted, and does not execute it afterwards', async () => {
    const bench = tagBench(kill, mortal)
    await bench.untilReady()
    bench.reader.faults.on({ kind: 'dead', functions: [MESSAGES.DELETE_ACCESSSPEC.type], times: 1 })
    expect(await bench.world.settle(bench.execute(ORDER))).toMatchObject({ outcome: 'unknown' })
    await bench.world.advance(5_000)
    await bench.untilReady()
    expect(bench.port.opened).toBe(2)
    bench.reader.see(EPC)
    bench.reader.see(EPC)
    await bench.world.advance(10)
    expect(bench.reads()).toHaveLength(2)
  })
})

describe('switching the EAS bit of a tag off', () => {
  const eas = { eas: {} }
  const UCODE_8 = 'E2806894'

  test('toggles the bit once, confirms by reading, and leaves a bit that is off', async () => {
    const bench = tagBench(eas, { tid: UCODE_8, config: 0x0041 })
    await bench.untilReady()
    expect(await bench.release()).toEqual({
      outcome: 'confirmed',
      commanded: true,
      detail: 'acknowledged: the tag shows that its EAS bit is off',
    })
    expect([bench.tag.config, bench.looks()]).toEqual([0x0040, 3])
    expect(await bench.release()).toEqual({
      outcome: 'confirmed',
      commanded: true,
      detail: 'acknowledged: its EAS bit was off already',
    })
    expect([bench.tag.config, bench.looks()]).toEqual([0x0040, 4])
  })

  test('uses the access password that the tag requires, and fails without it', async () => {
    const locked = { tid: UCODE_8, config: 1, accessPassword: '12AB34CD' }
    const knowing = tagBench({ eas: { password: '12ab34cd' } }, { ...locked })
    await knowing.untilReady()
    expect(await knowing.release()).toMatchObject({ outcome: 'confirmed' })
    const ignorant = tagBench(eas, { ...locked })
    await ignorant.untilReady()
    expect(await ignorant.release()).toEqual({
      outcome: 'failed',
      commanded: true,
      detail: 'refused: the tag requires its access password; set "password" of "eas"',
    })
    expect([knowing.tag.config, ignorant.tag.config]).toEqual([0, 1])
  })

  test.each<[string, SimulatedTag, string]>([
    ['Impinj', { tid: 'E2801160' }, 'of this chip (Impinj, TID E2801160) no EAS bit is known'],
    [
      'NXP UCODE G2iL',
      { tid: 'E2006806', config: 1 },
      'the EAS bit of an UCODE G2iL (ChangeConfig) needs a command of its maker, which LLRP does not have',
    ],
    [
      'NXP UCODE G2XL',
      { tid: 'E2006004' },
      'the EAS bit of an UCODE G2XL (ChangeEAS) needs a command of its maker, which LLRP does not have',
    ],
    ['no EPCglobal chip', { tid: 'E0040150' }, 'its TID E0040150 does not tell what chip it is'],
  ])('refuses with the reason and writes nothing: %s', async (_, tag, why) => {
    const bench = tagBench(eas, tag)
    await bench.untilReady()
    const before = bench.tag.config
    expect(await bench.release()).toEqual({ outcome: 'failed', commanded: false, detail: `not_supported: ${why}` })
    expect([bench.tag.config, bench.looks()]).toEqual([before, 1])
  })

  test('fails without a command for a tag that does not come, and releases the next one', async () => {
    const bench = tagBench(eas, { tid: UCODE_8, config: 1 })
    await bench.untilReady()
    expect(await bench.release(() => false)).toEqual({
      outcome: 'failed',
      commanded: false,
      detail: 'not_ready: the tag did not come into the field',
    })
    bench.reader.see(EPC)
    expect(bench.tag.config).toBe(1)
    expect(await bench.release()).toMatchObject({ outcome: 'confirmed' })
  })

  test('decides by reading if the answer to the write is lost, and does not toggle back', async () => {
    const bench = tagBench(eas, { tid: UCODE_8, config: 1, mutters: true })
    await bench.untilReady()
    expect(await bench.release()).toMatchObject({
      outcome: 'confirmed',
      detail: expect.stringContaining('the tag shows'),
    })
    expect([bench.tag.config, bench.looks()]).toEqual([0, 3])
  })

  test('reports unknown for a tag that is removed after the write, and leaves its bit', async () => {
    for (const isWritten of [false, true]) {
      const bench = tagBench(eas, { tid: UCODE_8, config: 1, mutters: true })
      await bench.untilReady()
      expect(await bench.release(() => bench.looks() < (isWritten ? 3 : 2))).toMatchObject({
        outcome: 'unknown',
        commanded: true,
        detail: expect.stringContaining('answer_lost'),
      })
      expect(bench.tag.config).toBe(isWritten ? 0 : 1)
      expect(await bench.release()).toMatchObject({ outcome: 'confirmed' })
      expect(bench.tag.config).toBe(0)
    }
  })

  test.each(['ADD_ACCESSSPEC', 'ENABLE_ACCESSSPEC', 'DELETE_ACCESSSPEC'] as const)(
    'toggles at most once when the plug is pulled at each %s, and succeeds at a retry',
    async (name) => {
      for (const nth of [1, 2, 3]) {
        const bench = tagBench(eas, { tid: UCODE_8, config: 1 })
        await bench.untilReady()
        const count = () => bench.reader.received.filter((received) => received === name).length
        const functions = [MESSAGES[name].type]
        const commandResult = await bench.release(() => {
          if (count() === nth - 1) bench.reader.faults.on({ kind: 'cut-before-answer', functions, times: 1 })
          return true
        })
        const where = `${name} ${nth}: ${JSON.stringify(commandResult)}`
        if (commandResult.outcome === 'confirmed') expect(bench.tag.config, where).toBe(0)
        if (commandResult.outcome === 'failed')
          expect([bench.tag.config, commandResult.commanded], where).toEqual([1, false])
        await bench.world.advance(20_000)
        await bench.untilReady()
        expect(await bench.release(), where).toMatchObject({ outcome: 'confirmed' })
        expect(bench.tag.config, where).toBe(0)
      }
    },
  )

  test('reads the chip from a TID', () => {
    expect(easOfChip([0xe280, 0x6890])).toEqual({ kind: 'toggle', chip: 'UCODE 7' })
    // A TID with the flags of Gen2 version 2.
    expect(easOfChip([0xe2c0, 0x6994])).toEqual({ kind: 'toggle', chip: 'UCODE 8m' })
    expect(easOfChip([0xe280, 0x6995])).toMatchObject({
      kind: 'none',
      why: expect.stringContaining('NXP, TID E2806995'),
    })
    expect(easOfChip([])).toMatchObject({ kind: 'none' })
  })
})

test.each([{ kill: { password: '12AB34CD' } }, { eas: {} }])(
  'rejects %j without the capability of the reader, and without the tag’s id',
  async (gate) => {
    const bench = gateBench({ gate, reader: { accessSpecs: 0 } })
    await bench.untilReady()
    expect(await bench.world.settle(bench.execute(ORDER))).toMatchObject({
      outcome: 'failed',
      commanded: false,
      detail: expect.stringContaining('not_supported'),
    })
    const able = gateBench({ gate })
    await able.untilReady()
    for (const tag of [undefined, { tagUid: '04A1' }, { epc: 'xyz' }, { epc: '30' }]) {
      const command = tag ? ({ kind: 'release', tag } as const) : RELEASE
      expect(await able.world.settle(able.execute(command))).toMatchObject({
        outcome: 'failed',
        commanded: false,
        detail: expect.stringContaining('not_supported'),
      })
    }
    expect(able.reader.received).not.toContain('ADD_ACCESSSPEC')
  },
)
