import { call } from './api.ts'
import { placeOfPage } from './place.ts'
import { slot, write } from './slots.ts'

/** The program of a page that this browser may not see yet: hands the credential over, and looks again. */
const { texts } = placeOfPage()

async function pair(credential: string): Promise<void> {
  write('pair-told', texts.busy)
  const answer = await call('POST', '/v1/pair', { credential })
  if (answer.ok) return location.reload()
  write('pair-told', answer.status === 401 ? texts.pair.wrong : texts.requestFailed[answer.fault].what)
}

slot('pair').addEventListener('submit', (event) => {
  event.preventDefault()
  const field = slot<HTMLInputElement>('credential')
  const pasted = field.value.trim()
  field.value = ''
  void pair(pasted)
})
