import { describe, expect, it } from 'vitest'
import { Receipt } from '../../../cloud/console/components/alarm-card.tsx'
import { consoleFormats, consoleTexts } from '../../../cloud/console/texts/catalogue.ts'

describe('the receipt that fits an alarm', () => {
  const occurredAt = '2026-11-20T12:00:00.000Z'
  const shown = (language: 'de' | 'en', match: 'item' | 'product', paidAt: string) =>
    String(
      Receipt({
        at: { texts: consoleTexts(language), formats: consoleFormats(language) },
        alarm: { occurredAt, receipt: { purchaseId: 'pur_1', paidAt, match } },
      }),
    )

  it.each([
    ['en', 'item', 'Paid 2 minutes after the alarm: this item is on a receipt of 13:02'],
    ['en', 'product', 'A receipt of 13:02, paid 2 minutes after the alarm, has this product. Compare it.'],
    ['de', 'item', '2 Minuten nach dem Alarm bezahlt: Dieses Stück steht auf einem Beleg von 13:02'],
    ['de', 'product', 'Ein Beleg von 13:02, 2 Minuten nach dem Alarm bezahlt, enthält dieses Produkt.'],
  ] as const)('says in %s that the goods were paid after the alarm (%s)', (language, match, text) => {
    expect(shown(language, match, '2026-11-20T12:02:30.000Z')).toContain(text)
  })

  it('says nothing of that if they were paid before', () => {
    const text = shown('en', 'item', '2026-11-20T11:58:00.000Z')
    expect(text).toContain('Paid: this item is on a receipt of 12:58')
    expect(text).not.toContain('after the alarm')
    expect(shown('de', 'item', '2026-11-20T12:00:20.000Z')).toContain('20 Sekunden nach dem Alarm bezahlt')
    expect(shown('de', 'item', '2026-11-20T12:01:20.000Z')).toContain('1 Minute nach dem Alarm bezahlt')
  })
})
