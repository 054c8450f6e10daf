/** Template of the form for trying an operation. The page's script shows the form. */
export function TryTemplate() {
  return (
    <template id="try">
      <form>
        <label>
          Test key <small>kept in this tab only; live keys are refused</small>
          <input name="key" type="password" autocomplete="off" spellcheck={false} placeholder="untag_test_sk_…" />
        </label>
        <label class="once">
          Idempotency-Key <small>the same key again gets the same answer</small>
          <input name="once" autocomplete="off" spellcheck={false} />
        </label>
        <label>
          Request
          <textarea name="request" rows={6} spellcheck={false}></textarea>
        </label>
        <label class="file">
          File
          <input name="file" type="file" />
        </label>
        <p class="refused" role="alert" hidden></p>
        <div class="row">
          <button class="send">Send</button>
          <button type="button" class="close">
            Close
          </button>
        </div>
        <output aria-live="polite"></output>
      </form>
    </template>
  )
}
