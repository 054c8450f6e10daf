import type { ItemStatus } from '../../policy/vocabulary.ts'

/** What each status of an item is in the Core Business Vocabulary. `reserved` of CBV is about numbers, not about goods. */
const DISPOSITION: Readonly<Record<ItemStatus, string>> = {
  sellable: 'sellable_accessible',
  paid: 'retail_sold',
  reserved_bopis: 'non_sellable_other',
  picked_up: 'retail_sold',
  returned: 'returned',
  transfer_in_transit: 'in_transit',
  cancelled: 'sellable_accessible',
  exception_hold: 'non_sellable_other',
}

/** What is done to an item that becomes this; a move out of `exception_hold` is an inspection, whatever comes of it. */
const STEP: Readonly<Partial<Record<ItemStatus, string>>> = {
  sellable: 'stocking',
  reserved_bopis: 'picking',
  picked_up: 'retail_selling',
  returned: 'receiving',
  transfer_in_transit: 'shipping',
  exception_hold: 'holding',
}

/** The disposition of an item of this status; undefined for a word that is none. */
export function dispositionOf(status: string | undefined): string | undefined {
  return (DISPOSITION as Record<string, string | undefined>)[status ?? '']
}

/** The business step by which an item got from one status to another; undefined where CBV has none. */
export function stepOf(from: string | null, to: string): string | undefined {
  if (from === null) return 'commissioning'
  if (from === 'exception_hold') return 'inspecting'
  if (from === 'transfer_in_transit') return 'receiving'
  return (STEP as Record<string, string | undefined>)[to]
}
