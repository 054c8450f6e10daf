/** A line of a sale or refund. */
export interface TransactionLine {
  readonly name: string
  readonly ean: string | undefined
  readonly quantity: number
  readonly unitCent: number
  readonly vat: number | undefined
  /** Deposits and refunded amounts have no EAN. */
  readonly kind: 'goods' | 'deposit' | 'amount'
  /** In a refund: the line of the sale of which some pieces came back. */
  readonly sold?: TransactionLine
}
