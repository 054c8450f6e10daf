import type { Child } from 'hono/jsx'
import type { z } from 'zod'
import { rolesFrom } from '../../platform/foundation/caller.ts'
import { UploadedFile } from '../../platform/operations/validation.ts'
import { importProducts } from '../../shop/catalogue/import-operation.ts'
import { Card, Figures } from '../components/card.tsx'
import { Choices, FileInput, TextArea } from '../components/fields.tsx'
import { ActionForm, Submit } from '../components/form.tsx'
import { Notice } from '../components/notice.tsx'
import { List, Table } from '../components/table.tsx'
import { NO_FORM, type FormFields, type FormState } from '../frame/form.ts'
import { page, type PageContext, type ViewContext } from '../frame/page.ts'

type Result = z.output<typeof importProducts.response>

/** Maximum number of notes that the page lists. */
const WARNINGS_SHOWN = 20
/** Name that tells the operation the kind of pasted text. */
const PASTED = 'pasted.csv'

/** The file of the form: the chosen one, else the pasted rows. */
function fileOf(form: FormFields): UploadedFile | undefined {
  const text = form.text('rows')
  return (
    form.file('file') ?? (text === undefined ? undefined : new UploadedFile(PASTED, new TextEncoder().encode(text)))
  )
}

/** Imports products from a spreadsheet, after a check that writes nothing. */
export const productImportPage = page<undefined>({
  path: '/console/products/import',
  roles: rolesFrom('manager'),
  scope: 'store',
  upload: importProducts,
  title: (texts) => texts.productImport.title,
  lead: (at) => at.texts.productImport.lead(at.store?.tradingName ?? ''),
  actions: {
    import: {
      operation: importProducts,
      input: (form, at) => ({
        storeId: at.store?.storeId,
        file: fileOf(form),
        dryRun: form.text('what') !== 'write',
      }),
      done: () => '',
      show: (result, at, { form }) => <Report at={at} result={result as Result} form={form} />,
    },
  },
  load: () => Promise.resolve(undefined),
  view(at) {
    const t = at.texts.productImport
    return (
      <div class="stack wide">
        <Card title={t.title}>
          <ImportForm at={at} form={at.form} what="check" />
        </Card>
        <Card title={t.steps}>
          <div class="stack">
            <List>
              {[t.step1, t.step2, t.step3].map((step) => (
                <li>{step}</li>
              ))}
            </List>
            <div class="row">
              <a class="button" href="/templates/products.xlsx" download>
                {t.template('Excel')}
              </a>
              <a class="button" href="/templates/products.csv" download>
                {t.template('CSV')}
              </a>
            </div>
          </div>
        </Card>
      </div>
    )
  },
})

function ImportForm({ at, form, what, rows }: { at: ViewContext; form: FormState; what: string; rows?: string }) {
  const t = at.texts.productImport
  // The form has a file in two fields, so a missing one has its own message. The reason why a file is unreadable is English.
  const isMissing = form.errors['file'] !== undefined && form.values['rows'] === ''
  const shown = isMissing ? { ...form, errors: { ...form.errors, file: t.noFile } } : form
  return (
    <ActionForm at={at} action="import" upload>
      <FileInput form={shown} name="file" label={t.file} hint={t.fileHint} accept=".xlsx,.csv" />
      <TextArea
        form={shown}
        name="rows"
        label={t.text}
        hint={t.textHint}
        {...(rows !== undefined && { value: rows })}
        rows={6}
      />
      <Choices
        form={shown}
        name="what"
        label={t.what}
        value={what}
        choices={[
          { value: 'check', label: t.check, hint: t.checkHint },
          { value: 'write', label: t.write, hint: t.writeHint },
        ]}
      />
      <div>
        <Submit>{t.go}</Submit>
      </div>
    </ActionForm>
  )
}

/** What was read and written, each error with its row, and the form for the next try. */
function Report({ at, result, form }: { at: ViewContext; result: Result; form: FormFields }) {
  const t = at.texts.productImport
  const { rows, imported, updated, errorCount, dryRun, warnings = [] } = result
  const pasted = form.file('file') === undefined ? form.text('rows') : undefined
  const isClean = errorCount === 0
  return (
    <div class="stack wide">
      {/* The form was further down: the focus brings the report into view. */}
      <div tabindex={-1} autofocus>
        <Notice tone={isClean ? 'ok' : 'warn'} title={dryRun ? t.checked : t.written}>
          {dryRun ? t.checkedText : t.writtenText}
        </Notice>
      </div>
      <Figures
        figures={[
          { label: t.rows, value: at.formats.number(rows) },
          {
            label: dryRun ? t.correct : t.imported,
            value: at.formats.number(imported),
            note: `${at.formats.number(updated)} ${t.known}`,
            tone: 'ok',
          },
          { label: t.wrong, value: at.formats.number(errorCount), tone: isClean ? 'plain' : 'warn' },
        ]}
      />
      <RowErrors at={at} result={result} />
      {warnings.length === 0 ? null : (
        <Card title={t.warnings} flush>
          <List>
            {warnings.slice(0, WARNINGS_SHOWN).map((warning) => (
              <li>
                <InEnglish at={at}>{warning}</InEnglish>
              </li>
            ))}
          </List>
        </Card>
      )}
      {isClean && !dryRun ? (
        <div>
          <a class="button main" href="/console/products">
            {at.texts.products.back}
          </a>
        </div>
      ) : (
        <Card title={isClean ? t.nextClean : t.next}>
          <div class="stack">
            {pasted === undefined ? <p class="soft">{t.nextFile}</p> : null}
            <ImportForm
              at={at}
              form={NO_FORM}
              what={isClean ? 'write' : 'check'}
              {...(pasted !== undefined && { rows: pasted })}
            />
          </div>
        </Card>
      )}
    </div>
  )
}

/** Messages of the operation are English sentences. */
function InEnglish({ at, children }: { at: PageContext; children?: Child }) {
  return at.language === 'en' ? <span>{children}</span> : <span lang="en">{children}</span>
}

function RowErrors({ at, result: { errors, errorCount } }: { at: ViewContext; result: Result }) {
  const t = at.texts.productImport
  const { fields } = at.texts.errors
  const byCode: Readonly<Record<string, string>> = t.codes
  const byColumn: Readonly<Record<string, string>> = t.columns
  const general: Readonly<Record<string, string>> = fields
  if (errors.length === 0) return null
  return (
    <Card title={t.errors} flush>
      <Table
        caption={t.errors}
        rows={errors}
        columns={[
          { label: t.row, kind: 'head', cell: ({ row, index }) => `${t.row} ${row ?? index + 1}` },
          { label: t.ean, cell: ({ ean }) => (ean === null ? null : <code>{ean}</code>) },
          { label: t.column, cell: ({ field }) => <code>{field}</code> },
          {
            label: t.problem,
            cell: ({ code, field, message }) => (
              <span>
                {at.language === 'en' ? null : (byCode[code] ?? byColumn[field] ?? general[code] ?? fields.other)}
                <span class={at.language === 'en' ? undefined : 'sub'}>
                  <InEnglish at={at}>{message}</InEnglish>
                </span>
              </span>
            ),
          },
        ]}
      />
      {errorCount > errors.length ? (
        <p class="small soft pad">{t.errorsShown(at.formats.number(errors.length), at.formats.number(errorCount))}</p>
      ) : null}
    </Card>
  )
}
