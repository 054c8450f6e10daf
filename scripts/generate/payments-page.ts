import { settingsOf } from '../../cloud/sales/payments/configure-psp.ts'
import type { PaymentProvider } from '../../cloud/sales/payments/provider.ts'
import { PROVIDERS } from '../../cloud/sales/payments/providers.ts'
import { replaceMarked } from './contract-page.ts'

/** Title of a column, and its cell for a provider. */
type Column = readonly [title: string, cellOf: (provider: PaymentProvider) => string]

/** The tables of the page, by the name in their mark. */
const TABLES: Readonly<Record<string, readonly Column[]>> = {
  settings: [
    ['`config`', settingsOf],
    ['at the provider, register the returned `notificationUrl` for', ({ guide }) => guide.setUp],
  ],
  differences: [
    ['the cloud trusts', ({ guide }) => guide.notifications],
    ['the shopper cancels: the purchase ends', ({ guide }) => guide.cancellation],
    ['a repeated refund is recognized by', ({ guide }) => guide.repeatedRefund],
    ['the provider reports', ({ guide }) => guide.reports],
  ],
  sources: [
    ['what the connector uses', ({ guide }) => guide.uses],
    ['documentation that we used', ({ guide }) => guide.documentation],
    ["checked against the provider's own code or data", ({ guide }) => guide.comparedWith],
  ],
}

/** Replaces the tables of providers in docs/guides/payments.md. */
export function paymentsPage(page: string): string {
  return Object.entries(TABLES).reduce((text, [name, columns]) => {
    const row = (cells: readonly string[]) => `| ${cells.join(' | ')} |`
    const rows = Object.values(PROVIDERS).map((provider) =>
      row([`\`${provider.name}\``, ...columns.map(([, cellOf]) => cellOf(provider))]),
    )
    const table = [
      row(['provider', ...columns.map(([title]) => title)]),
      `|${'---|'.repeat(columns.length + 1)}`,
      ...rows,
    ]
    return replaceMarked(text, `<!-- providers:${name} -->`, '<!-- /providers -->', `\n\n${table.join('\n')}\n\n`)
  }, page)
}
