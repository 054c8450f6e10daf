import { z } from 'zod'
import type { PushFault } from './connector.ts'
import type { TransactionLine } from './transaction.ts'

/** What an ERP's orders need of the lines of a sale: whose article each is, and at which price. */

/** Whether an ERP's prices hold the VAT. */
export const PricesSetting = z.enum(['gross', 'net'])

/** The price of one unit in EUR, with its VAT or without. */
export function unitPrice(
  { unitCent, vat }: TransactionLine,
  prices: z.output<typeof PricesSetting> = 'gross',
): number {
  return prices === 'gross' ? unitCent / 100 : Math.round((unitCent / (1 + (vat ?? 0) / 100)) * 100) / 10_000
}

const ArticleNumber = z.string().min(1).max(140)

/** Settings of an ERP that is written to: which of its articles deposits are booked on. An article has one VAT, deposits have two. */
export const DEPOSIT_SETTINGS = {
  depositArticle: ArticleNumber.optional(),
  reducedDepositArticle: ArticleNumber.optional(),
}

/** Of the documentation of credentials. */
export const DEPOSIT_NEEDS = '`depositArticle`? (to write deposits), `reducedDepositArticle`? (those with 7 %)'

interface DepositArticles {
  readonly depositArticle?: string | undefined
  readonly reducedDepositArticle?: string | undefined
}

/** How a system finds its own articles; `undefined`: it has none. */
interface Articles<A> {
  byEan(ean: string): Promise<A | undefined>
  byNumber(number: string): Promise<A | undefined> | A
}

type Found<A> = { fault: PushFault } | { found: { line: TransactionLine; article: A }[] }

const NO_DEPOSIT_ARTICLE =
  'a deposit has no EAN: name the article that the system books deposits on in credentials.depositArticle'

/** The articles of all lines, or the first line that has none: a sale is written whole or not at all. */
export async function articlesOf<A>(
  lines: readonly TransactionLine[],
  index: number,
  settings: DepositArticles,
  articles: Articles<A>,
): Promise<Found<A>> {
  const found: { line: TransactionLine; article: A }[] = []
  for (const [at, line] of lines.entries()) {
    const number = line.isDeposit ? depositArticle(line, settings) : undefined
    if (line.isDeposit && number === undefined) {
      return {
        fault: { index, field: `items.${at}.depositOf`, code: 'deposit_article_missing', message: NO_DEPOSIT_ARTICLE },
      }
    }
    const article = await articleOf(line.ean, number, articles)
    if (article === undefined) return { fault: unknownArticle(index, at, number) }
    found.push({ line, article })
  }
  return { found }
}

async function articleOf<A>(
  ean: string | undefined,
  number: string | undefined,
  articles: Articles<A>,
): Promise<A | undefined> {
  if (number !== undefined) return articles.byNumber(number)
  return ean === undefined ? undefined : articles.byEan(ean)
}

function depositArticle(
  { vat }: TransactionLine,
  { depositArticle: usual, reducedDepositArticle }: DepositArticles,
): string | undefined {
  return vat === 7 ? (reducedDepositArticle ?? usual) : usual
}

function unknownArticle(index: number, line: number, number: string | undefined): PushFault {
  if (number === undefined)
    return {
      index,
      field: `items.${line}.ean`,
      code: 'unknown_product',
      message: 'the system has no article with this EAN',
    }
  return {
    index,
    field: `items.${line}.depositOf`,
    code: 'unknown_product',
    message: 'the system has no article of the number that the credentials name for deposits',
  }
}
