import type { ItemLabel } from './item-table.ts'

/** Items with a label beyond this count have an unknown one. */
const LABEL_LIMIT = 65_535

/** The distinct labels of the items, each under its number from 1. */
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

  /** The number of this label; adds the label if it is new. 0: there are too many. */
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
