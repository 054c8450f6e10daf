import type { ItemStatus } from '../../policy/vocabulary.ts'

/**
 * Disposition of each item status in the Core Business Vocabulary (CBV). The `reserved` of CBV is for identifiers,
 * not for goods.
 */
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

/** Business step of a change to each status. A change from `exception_hold` is always an inspection. */
const STEP: Readonly<Partial<Record<ItemStatus, string>>> = {
  sellable: 'stocking',
  reserved_bopis: 'picking',
  picked_up: 'retail_selling',
  returned: 'receiving',
  transfer_in_transit: 'shipping',
  exception_hold: 'holding',
}

/** Disposition of an item status; undefined for other texts. */
export function dispositionOf(status: string | undefined): string | undefined {
  return (DISPOSITION as Record<string, string | undefined>)[status ?? '']
}

/**
 * Business step of a change between two statuses; undefined if CBV has none. Without a change, the tag was removed from
 * the goods.
 */
export function stepOf(from: string | null, to: string): string | undefined {
  if (from === null) return 'commissioning'
  if (from === to) return 'decommissioning'
  if (from === 'exception_hold') return 'inspecting'
  if (from === 'transfer_in_transit') return 'receiving'
  return (STEP as Record<string, string | undefined>)[to]
}
