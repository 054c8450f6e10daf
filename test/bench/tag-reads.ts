import { encodeMessage } from '../../device-drivers/llrp/protocol/binary.ts'
import { message, parameter } from '../../device-drivers/llrp/protocol/elements.ts'
import { llrpCodec } from '../../device-drivers/llrp/protocol/frames.ts'
import { readTagReports } from '../../device-drivers/llrp/protocol/tag-reports.ts'
import { epcsOfShop } from '../../simulators/devices/llrp-crowd.ts'
import type { ItemStatus } from '../../policy/vocabulary.ts'
import { ITEM_STATUSES } from '../../policy/vocabulary.ts'
import { median, ratios, samplesOf, takeTurns, cpuTime } from './measure.ts'
import { rowsOf, type Bench, type Figure, type Result, type Sizes, type Target } from './figure.ts'
import { llrpjsDecode } from './peers/llrpjs-decode.ts'

const NAMES = {
  lookUp: 'look up, walkers, EPC at hand (memory alone)',
  lookUpWorst: 'look up, never twice, EPC at hand (memory alone)',
  decode: 'bytes to tag reads (codec alone)',
  both: 'bytes to status, walkers',
  worst: 'bytes to status, never twice the same tag',
  peer: 'llrpjs: one message decoded (fewer steps)',
}

/** Length of a chunk of the stream, bytes. A message may continue in the next chunk. */
const CHUNK_BYTES = 65_536
/** Reads of one tag on its way through the gate, mixed with reads of other tags. */
const READS_OF_ONE = 20
const TOGETHER = 15
const PER_SECOND = 1e6

/** `items`: number of items of the store; each has a status. */
const SIZES = {
  full: { items: 200_000, reads: 200_000, peerReads: 2_000, rounds: 15, warmUps: 3 },
  quick: { items: 200_000, reads: 60_000, peerReads: 2_000, rounds: 5, warmUps: 3 },
  smoke: { items: 2_000, reads: 1_000, peerReads: 20, rounds: 1, warmUps: 0 },
} satisfies Sizes

/**
 * Measures how many tag reads per second one core processes, from the bytes of the reader to the status of the item.
 */
export const tagReads: Figure = { sizes: SIZES, run }

/** A stream of RO_ACCESS_REPORT messages with one tag each, as readers at a gate send them. */
function stream(epcs: readonly string[]): Uint8Array {
  const report = (EPC: string) =>
    encodeMessage(
      message(
        'RO_ACCESS_REPORT',
        1,
        {},
        parameter(
          'TagReportData',
          {},
          parameter('EPC_96', { EPC }),
          parameter('AntennaID', { AntennaID: 1 }),
          parameter('PeakRSSI', { PeakRSSI: -55 }),
          parameter('FirstSeenTimestampUTC', { Microseconds: 1_594_174_805_140_192n }),
          parameter('TagSeenCount', { TagCount: 1 }),
        ),
      ),
    )
  return Buffer.concat(epcs.map(report))
}

function asPeopleWalk(epcs: readonly string[], reads: number): string[] {
  const group = READS_OF_ONE * TOGETHER
  // Spreads the tags of a group over the list, because tags that pass the gate together belong to unrelated items.
  return Array.from(
    { length: reads },
    (_, i) => epcs[((Math.floor(i / group) * TOGETHER + (i % TOGETHER)) * 7_919) % epcs.length] ?? '',
  )
}

async function run({ mode, random }: Bench): Promise<Result> {
  const { items, reads, peerReads, rounds, warmUps } = SIZES[mode]
  const epcs = epcsOfShop(items)
  // The keys are copies of the EPC texts, because in an agent the keys do not come from the codec.
  const statuses = new Map<string, ItemStatus>(
    epcs.map((epc, i) => [`${epc}`, ITEM_STATUSES[i % ITEM_STATUSES.length] ?? 'sellable']),
  )
  const walked = asPeopleWalk(epcs, reads)
  const strange = Array.from({ length: reads }, (_, i) => epcs[(i * 7_919) % epcs.length] ?? '')
  const walkedBytes = stream(walked)
  const strangeBytes = stream(strange)
  const length = walkedBytes.length / reads

  function eachRead(bytes: Uint8Array, look: (epc: string) => void): void {
    const codec = llrpCodec()
    let seen = 0
    for (let at = 0; at < bytes.length; at += CHUNK_BYTES) {
      for (const frame of codec.push(bytes.subarray(at, at + CHUNK_BYTES))) {
        for (const { epc } of readTagReports(frame.body) ?? []) {
          seen++
          look(epc)
        }
      }
    }
    if (seen !== reads) throw new Error(`${seen} of ${reads} tags were read`)
  }
  const known = (epc: string) => {
    if (!statuses.has(epc)) throw new Error(`no status of ${epc}`)
  }
  const contender = (name: string, operations: number, work: () => void) => ({
    name,
    slice: () => cpuTime(operations, work),
  })
  const contenders = [
    contender(NAMES.lookUp, reads, () => walked.forEach(known)),
    contender(NAMES.lookUpWorst, reads, () => strange.forEach(known)),
    contender(NAMES.decode, reads, () => eachRead(walkedBytes, () => {})),
    contender(NAMES.both, reads, () => eachRead(walkedBytes, known)),
    contender(NAMES.worst, reads, () => eachRead(strangeBytes, known)),
    contender(NAMES.peer, peerReads, () => {
      for (let i = 0; i < peerReads; i++) known(llrpjsDecode(walkedBytes.subarray(i * length, (i + 1) * length)))
    }),
  ]
  const samples = await takeTurns(contenders, rounds, random, warmUps)
  const perSecond = PER_SECOND / median(samplesOf(samples, NAMES.both))
  const target: Target = {
    text: `${NAMES.both}: at least a million a second, one core (millions)`,
    measured: perSecond / PER_SECOND,
    limit: 1,
    met: perSecond >= PER_SECOND,
  }
  return {
    title: `Tag reads of LLRP readers, from the wire to the status in a Map of ${items.toLocaleString('en')} items`,
    counts: 'CPU time of the process, all threads; one tag a message, as at a gate',
    rows: rowsOf(samples, NAMES.decode),
    targets: [target],
    notes: [
      `walkers: ${TOGETHER} tags at a time, each read ${READS_OF_ONE} times; a look-up of a tag that was not read recently waits for memory, ${median(ratios(samples, NAMES.worst, NAMES.both)).toFixed(1)} × the cost`,
      'llrpjs receives single messages; untag first finds them in the stream',
    ],
  }
}
