import { parseEpc } from '../../../policy/gs1/epc.ts'
import { receiptEntry, type ReceiptClaims } from '../../../policy/receipts/claims.ts'

/**
 * Receipts that were honoured at a gate a moment ago. Each tag that passes takes one of the entries that
 * were still unused: more tags than goods on the receipt find none, fewer are no matter (contracts §4).
 */
export interface ReceiptPasses {
  /** `unused`: the numbers of the entries whose way out was free until now. */
  show(claims: ReceiptClaims, unused: readonly number[], atMs: number): void
  /** Takes an entry for this tag, if there is one. The same tag again has its own already. */
  covers(epc: string, atMs: number): boolean
}

/** How long after it was shown the goods of a receipt may pass, ms. */
const PASS_MS = 30_000
const PASSES_LIMIT = 20

interface Pass {
  cti: Uint8Array
  untilMs: number
  /** Entry in hex → how many of it are left. */
  left: Map<string, number>
  tags: Set<string>
}

/** The receipts of one gate. */
export function receiptPasses(): ReceiptPasses {
  let passes: Pass[] = []

  function take(pass: Pass, epc: string): boolean {
    if (pass.tags.has(epc)) return true
    const gtin = parseEpc(epc)?.gtin14
    const names = [receiptEntry(pass.cti, 'epc', epc), ...(gtin === undefined ? [] : [receiptEntry(pass.cti, 'gtin', gtin)])]
    for (const name of names) {
      const entry = Buffer.from(name).toString('hex')
      const left = pass.left.get(entry) ?? 0
      if (left === 0) continue
      pass.left.set(entry, left - 1)
      pass.tags.add(epc)
      return true
    }
    return false
  }

  return {
    show({ cti, entries }, unused, atMs) {
      if (!entries) return
      const left = new Map<string, number>()
      for (const n of unused) {
        const entry = entries[n]
        if (!entry) continue
        const hex = Buffer.from(entry).toString('hex')
        left.set(hex, (left.get(hex) ?? 0) + 1)
      }
      passes = passes.filter((pass) => pass.untilMs > atMs).slice(-PASSES_LIMIT + 1)
      passes.push({ cti, untilMs: atMs + PASS_MS, left, tags: new Set() })
    },
    covers: (epc, atMs) => passes.some((pass) => pass.untilMs > atMs && take(pass, epc)),
  }
}
