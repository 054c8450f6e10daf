import { z } from 'zod'
import type { PushFault } from './connector.ts'
import type { TransactionLine } from './transaction-line.ts'

/** Finds the ERP article and price of each line of a sale. */

/** Whether prices of an ERP include VAT. */
export const PricesSetting = z.enum(['gross', 'net'])

/** Price of one unit in EUR, with or without VAT. */
export function unitPrice(
  { unitCent, vat }: TransactionLine,
  prices: z.output<typeof PricesSetting> = 'gross',
): number {
  return prices === 'gross' ? unitCent / 100 : Math.round((unitCent / (1 + (vat ?? 0) / 100)) * 100) / 10_000
}

const ArticleNumber = z.string().min(1).max(140)

/**
 * Settings for writing sales to an ERP: article numbers for deposits and for refunded amounts, each for both VAT rates.
 */
export const BOOKING_SETTINGS = {
  depositArticle: ArticleNumber.optional(),
  reducedDepositArticle: ArticleNumber.optional(),
  refundArticle: ArticleNumber.optional(),
  reducedRefundArticle: ArticleNumber.optional(),
}

/** Description of these settings for the API documentation. */
export const BOOKING_NEEDS =
  '`depositArticle`? (to write deposits), `reducedDepositArticle`? (those with 7 %), `refundArticle`? (to write refunds of an amount), `reducedRefundArticle`? (those with 7 %)'

/** Parsed settings. */
export type BookingArticles = { readonly [K in keyof typeof BOOKING_SETTINGS]?: string | undefined }

/** Finds articles in a system; undefined if there is none. */
interface Articles<A> {
  byEan(ean: string): Promise<A | undefined>
  byNumber(number: string): Promise<A | undefined> | A
}

/** Record index and field (`items` or a refund) that faults of these lines contain. */
interface LinesPlace {
  readonly index: number
  readonly field: string
}

type Found<A> = { fault: PushFault } | { found: { line: TransactionLine; article: A }[] }

const MISSING = {
  deposit: {
    code: 'deposit_article_missing',
    message: 'a deposit has no EAN: set credentials.depositArticle to the article on which the system books deposits',
  },
  amount: {
    code: 'refund_article_missing',
    message:
      'this refund is an amount, not goods: set credentials.refundArticle to the article on which the system ' +
      'books such refunds',
  },
}

/**
 * Finds the articles of all lines. Returns a fault if a line has no article, because a system accepts a document only
 * as a whole.
 */
export async function articlesOf<A>(
  lines: readonly TransactionLine[],
  { index, field }: LinesPlace,
  settings: BookingArticles,
  articles: Articles<A>,
): Promise<Found<A>> {
  const found: { line: TransactionLine; article: A }[] = []
  for (const [at, line] of lines.entries()) {
    const place = (name: string) => (field === 'items' ? `items.${at}.${name}` : field)
    const number = line.kind === 'goods' ? undefined : bookingArticle(line, settings)
    if (line.kind !== 'goods' && number === undefined)
      return { fault: { index, field: place('depositOf'), ...MISSING[line.kind] } }
    const article = await articleOf(line.ean, number, articles)
    if (article === undefined)
      return {
        fault: {
          index,
          field: place(number === undefined ? 'ean' : 'depositOf'),
          code: 'unknown_product',
          message:
            number === undefined
              ? 'the system has no article with this EAN'
              : 'the system has no article with the number that the credentials name',
        },
      }
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
  for (const form of ean === undefined ? [] : formsOf(ean)) {
    const article = await articles.byEan(form)
    if (article !== undefined) return article
  }
  return undefined
}

/** Forms in which a system may store an EAN. Many store a UPC-A with its 12 digits. */
function formsOf(ean: string): string[] {
  return ean.startsWith('0') ? [ean, ean.slice(1), ean.padStart(14, '0')] : [ean]
}

function bookingArticle({ vat, kind }: TransactionLine, settings: BookingArticles): string | undefined {
  const [usual, reduced] =
    kind === 'deposit'
      ? [settings.depositArticle, settings.reducedDepositArticle]
      : [settings.refundArticle, settings.reducedRefundArticle]
  return vat === 7 ? (reduced ?? usual) : usual
}
