import type { Database as Connection } from 'better-sqlite3'

/** Receipt rights that the steps of a token use, as the cloud reports them. */
export class TokenRights {
  readonly #bind
  readonly #boundTo

  constructor(db: Connection) {
    this.#bind = db.prepare(
      'INSERT INTO token_right (nonce, step, cti, ordinal, until_s) VALUES (?, ?, ?, ?, ?) ON CONFLICT (nonce, step) DO NOTHING',
    )
    this.#boundTo = db.prepare<[string], { cti: string; ordinal: number }>(
      'SELECT cti, ordinal FROM token_right WHERE nonce = ? ORDER BY step',
    )
  }

  bind(nonce: string, step: number, right: { cti: string; ordinal: number }, untilS: number): void {
    this.#bind.run(nonce, step, right.cti, right.ordinal, untilS)
  }

  receiptOf(nonce: string): { cti: string; ordinals: number[] } | undefined {
    const rows = this.#boundTo.all(nonce)
    const [first] = rows
    return first && { cti: first.cti, ordinals: rows.map(({ ordinal }) => ordinal) }
  }
}
