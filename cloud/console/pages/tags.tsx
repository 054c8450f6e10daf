import type { z } from 'zod'
import { parseEpc } from '../../../policy/gs1/epc.ts'
import { rolesFrom } from '../../platform/foundation/caller.ts'
import { reuseTags } from '../../protection/items/register-item.ts'
import { Card } from '../components/card.tsx'
import { TextArea, TextField } from '../components/fields.tsx'
import { ActionForm, Submit } from '../components/form.tsx'
import { List } from '../components/table.tsx'
import { page, type ViewContext } from '../frame/page.ts'

type Reused = z.output<typeof reuseTags.response>

/** Puts hard tags of sold goods on other goods. */
export const tagsPage = page<null>({
  path: '/console/tags',
  roles: rolesFrom('associate'),
  scope: 'store',
  navigation: { group: 'operations', icon: 'tag' },
  title: (texts) => texts.tags.title,
  lead: (at) => at.texts.tags.lead,
  actions: {
    reuse: {
      operation: reuseTags,
      input: (form, at) => ({
        storeId: at.store?.storeId,
        tags: linesOf(form.text('tags')).map((line) => ({ ...tagOf(line), ean: form.text('ean') })),
      }),
      done: () => '',
      show: (result, at) => <Result at={at} reused={result as Reused} />,
    },
  },
  load: () => Promise.resolve(null),
  view(at) {
    const t = at.texts.tags
    return (
      <Card>
        <ActionForm at={at} action="reuse">
          <TextField form={at.form} name="ean" label={t.ean} maxlength={128} />
          <TextArea form={at.form} name="tags" label={t.tags} hint={t.tagsHint} rows={8} maxlength={60_000} />
          <Submit>{t.save}</Submit>
        </ActionForm>
      </Card>
    )
  },
})

function linesOf(text: string | undefined): string[] {
  return (text ?? '').split('\n').flatMap((line) => (line.trim() === '' ? [] : [line.trim()]))
}

/** Shortest EPC that differs from a printed number, hex digits. */
const EPC_LENGTH = 24

/** An EPC has 96 bits or more, and the bytes of a UID have colons. Everything else is a printed number. */
export function tagOf(line: string): { epc: string } | { tagUid: string } | { tagId: string } {
  if (line.length >= EPC_LENGTH && parseEpc(line)) return { epc: line }
  return /^[0-9a-f]{2}(?::[0-9a-f]{2})+$/i.test(line) ? { tagUid: line } : { tagId: line }
}

function Result({ at, reused: { reused, errors } }: { at: ViewContext; reused: Reused }) {
  const t = at.texts.tags
  return (
    <Card title={t.result(reused)}>
      {errors.length === 0 ? null : (
        <>
          <p>{t.refused}</p>
          <List>
            {errors.map(({ tag, code }) => (
              <li class="row between">
                <span>{tag}</span>
                <span class="sub">{t.reasons[code] ?? t.otherReason}</span>
              </li>
            ))}
          </List>
        </>
      )}
      <a class="button" href="/console/tags">
        {t.more}
      </a>
    </Card>
  )
}
