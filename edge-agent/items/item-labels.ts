import type { ItemLabel } from './item-table.ts'

/** Maximum number of distinct labels. Items with further labels are stored without a label. */
const LABEL_LIMIT = 65_535

/** The distinct labels (category, brand and technology) of the items, numbered from 1. */
export class ItemLabels {
  readonly #labels: ItemLabel[] = []
  readonly #numbers = new Map<string, number>()

  constructor(stored: readonly ItemLabel[]) {
    for (const label of stored) this.numberOf(label)
  }

  get all(): readonly ItemLabel[] {
    return this.#labels
  }

  at(number: number): ItemLabel | undefined {
    return this.#labels[number - 1]
  }

  /** Returns the number of this label. A new label gets the next number, or 0 if there are too many labels. */
  numberOf(label: ItemLabel): number {
    const key = JSON.stringify([label.category, label.brand, label.technology])
    const known = this.#numbers.get(key)
    if (known !== undefined) return known
    if (this.#labels.length >= LABEL_LIMIT) return 0
    this.#labels.push(label)
    this.#numbers.set(key, this.#labels.length)
    return this.#labels.length
  }
}
