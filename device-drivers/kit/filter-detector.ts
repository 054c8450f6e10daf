import type { DeviceEvent, Finding, TagRead } from './device.ts'

/** Reads in a row without a further read of the same tag within `CLOSE_MS`, after which a reader counts as one that filters. */
const READS = 200
const CLOSE_MS = 400
const MAX_TAGS = 5_000

/**
 * Finds out that a reader, or software before it, reports a tag again only after a time, or never. A gate would miss
 * people who walk fast. A reader that reports each read reads a tag several times a second.
 */
export interface FilterDetector {
  add(reads: readonly TagRead[]): void
  /** What is found at present, for `DeviceIdentity.findings`. */
  readonly findings: readonly Finding[]
}

/** Makes the detector. `advice` names the setting to change and its new value; `put` receives changes. */
export function filterDetector(advice: string, put: (event: DeviceEvent) => void): FilterDetector {
  /** Last read of each tag, ms; ordered by the time at which it was added. */
  const lastReads = new Map<string, number>()
  let newestMs = Number.NEGATIVE_INFINITY
  let alone = 0
  let finding: Finding | null = null

  function onClose(): void {
    alone = 0
    if (finding) put({ type: 'finding_over', code: finding.code })
    finding = null
  }

  function onAlone(): void {
    if (++alone < READS || finding) return
    finding = {
      code: 'reader_filters',
      detail: `the reader filters: after each of ${READS} reads it did not report the tag again within ${CLOSE_MS / 1_000} s, so that a gate misses who walks fast; ${advice}`,
      isWarning: false,
    }
    put({ type: 'finding', finding })
  }

  /** Counts the tags that the reader has not reported again, up to the reports before this one. */
  function forgetOld(): void {
    for (const [name, lastMs] of lastReads) {
      if (newestMs - lastMs < CLOSE_MS && lastReads.size <= MAX_TAGS) return
      lastReads.delete(name)
      if (newestMs - lastMs >= CLOSE_MS) onAlone()
    }
  }

  return {
    add(reads) {
      forgetOld()
      // A report may list the reads of one tag after those of another.
      for (const { tag, seenAtMs } of reads) {
        const name = 'epc' in tag ? tag.epc : tag.tagUid
        const last = lastReads.get(name)
        newestMs = Math.max(newestMs, seenAtMs)
        // Reads that the reader sends again, or that come in another order, show nothing.
        if (last !== undefined && seenAtMs < last) continue
        if (last !== undefined && seenAtMs - last < CLOSE_MS) onClose()
        else if (last !== undefined) onAlone()
        lastReads.delete(name)
        lastReads.set(name, seenAtMs)
      }
    },
    get findings() {
      return finding ? [finding] : []
    },
  }
}
