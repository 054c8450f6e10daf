import type { Product } from '../../shop/catalogue/schema.ts'
import type { FormFields, FormState } from '../frame/form.ts'
import { amountText } from '../frame/lines.ts'
import type { PageContext } from '../frame/page.ts'
import { Checkbox, Select, TextArea, TextField } from './fields.tsx'

/** Fields whose text the operation takes as it is. */
const TEXTS = ['category', 'brand', 'unit', 'weight', 'description'] as const
const AMOUNTS = ['oldPrice', 'deposit'] as const
const FLAGS = ['isOrganic', 'isVegan'] as const

/**
 * The fields of a product form as the operations take them. `empty` is the value of an empty optional field: null clears
 * it in a change, undefined leaves it out of a new product.
 */
export function productInput<E extends null | undefined>(form: FormFields, empty: E): Record<string, unknown> {
  const allergens = form.text('allergens')?.split(',')
  const flag = (name: string) => ({ yes: true, no: false })[form.text(name) ?? ''] ?? empty
  return {
    name: form.text('name') ?? '',
    price: form.number('price') ?? '',
    vat: form.number('vat'),
    ...Object.fromEntries(TEXTS.map((name) => [name, form.text(name) ?? empty])),
    ...Object.fromEntries(AMOUNTS.map((name) => [name, form.number(name) ?? empty])),
    ...Object.fromEntries(FLAGS.map((name) => [name, flag(name)])),
    depositVat: form.number('depositVat') ?? empty,
    allergens: allergens?.map((each) => each.trim()).filter((each) => each !== '') ?? empty,
    tagged: form.isSet('tagged'),
    flags: { requiresHumanVerification: form.isSet('requiresHumanVerification') },
  }
}

/** The values of a product as its form shows them. */
export function productValues(product: Product, at: PageContext): Record<string, string> {
  const amount = (value: number | undefined) => (value === undefined ? '' : amountText(value, at))
  const flag = (value: boolean | undefined) => (value === undefined ? '' : value ? 'yes' : 'no')
  return {
    name: product.name,
    price: amountText(product.price, at),
    oldPrice: amount(product.oldPrice),
    vat: String(product.vat),
    ...Object.fromEntries(TEXTS.map((name) => [name, product[name] ?? ''])),
    deposit: amount(product.deposit),
    depositVat: product.depositVat === undefined ? '' : String(product.depositVat),
    allergens: product.allergens?.join(', ') ?? '',
    isOrganic: flag(product.isOrganic),
    isVegan: flag(product.isVegan),
  }
}

/** The fields of a new or stored product. */
export function ProductFields({ at, form, product }: { at: PageContext; form: FormState; product?: Product }) {
  const t = at.texts.products
  const values: Record<string, string> = product ? productValues(product, at) : { vat: '19' }
  const field = (name: string) => ({ form, name, value: values[name] ?? '' })
  const rates = ['19', '7'].map((value) => ({ value, label: value }))
  const flags = [
    { value: '', label: t.notStated },
    { value: 'yes', label: t.yes },
    { value: 'no', label: t.no },
  ]
  const hasError = Object.keys(form.errors).some((name) => !['ean', 'name', 'price', 'oldPrice', 'vat'].includes(name))
  return (
    <>
      <TextField {...field('name')} label={t.name} maxlength={120} required />
      <div class="grid">
        <TextField {...field('price')} label={t.price} hint={t.priceRule} inputmode="decimal" required />
        <TextField {...field('oldPrice')} label={t.oldPrice} hint={t.oldPriceHint} inputmode="decimal" />
        <Select {...field('vat')} label={t.vat} choices={rates} />
      </div>
      <Checkbox
        form={form}
        name="tagged"
        label={t.tagged}
        hint={t.taggedHint}
        value={product?.tagged === false ? undefined : 'yes'}
      />
      <Checkbox
        form={form}
        name="requiresHumanVerification"
        label={t.ageCheck}
        value={product?.flags.requiresHumanVerification === true ? 'yes' : undefined}
      />
      <details open={hasError}>
        <summary>{t.more}</summary>
        <div class="stack">
          <div class="grid">
            <TextField {...field('brand')} label={t.brand} maxlength={120} />
            <TextField {...field('category')} label={t.category} maxlength={120} />
            <TextField {...field('unit')} label={t.unit} hint={t.unitHint} maxlength={40} />
            <TextField {...field('weight')} label={t.weight} hint={t.weightHint} maxlength={40} />
            <TextField {...field('deposit')} label={t.deposit} hint={t.depositHint} inputmode="decimal" />
            <Select
              {...field('depositVat')}
              label={t.depositVat}
              choices={[{ value: '', label: t.sameVat }, ...rates]}
            />
            <Select {...field('isOrganic')} label={t.isOrganic} choices={flags} />
            <Select {...field('isVegan')} label={t.isVegan} choices={flags} />
          </div>
          <TextField {...field('allergens')} label={t.allergens} hint={t.allergensHint} maxlength={2_000} />
          <TextArea {...field('description')} label={t.description} maxlength={300} />
        </div>
      </details>
    </>
  )
}
