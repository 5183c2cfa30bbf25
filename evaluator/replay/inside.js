// What is read of an element, in a world beside the page's own: a page that redefines its built-ins changes nothing here.
(() => {
  const style = (element, property, pseudo) =>
    getComputedStyle(element, pseudo ? '::' + pseudo : null).getPropertyValue(property);

  const paint = (context, colour) => {
    context.clearRect(0, 0, 1, 1);
    context.fillStyle = colour;
    context.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = context.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };

  const readings = {
    seen(element) {
      if (['OPTION', 'OPTGROUP', 'TITLE'].includes(element.tagName)) return true;
      if (!element.checkVisibility({opacityProperty: true, visibilityProperty: true})) return false;
      const box = element.getBoundingClientRect();
      if (box.width * box.height <= 1) return false;
      return box.right + scrollX > 0 && box.bottom + scrollY > 0;
    },
    text: element => element.innerText ?? element.textContent,
    attribute: (element, name) => element.getAttribute(name),
    style,
    // The style, and whether it is the same as each of two others, colours compared as colours.
    styleBeside(element, property, pseudo, wanted, unwanted) {
      const seen = style(element, property, pseudo);
      const plain = value => {
        if (!CSS.supports('color', value)) return value;
        const context = new OffscreenCanvas(1, 1).getContext('2d');
        context.fillStyle = value;
        return context.fillStyle;
      };
      const same = value => value !== null && plain(seen) === plain(value);
      return [seen, same(wanted), same(unwanted)];
    },
    side: (element, name) => Math.round(element.getBoundingClientRect()[name]),
    widths: element => [element.scrollWidth, element.clientWidth],
    // The text's colour, and the backgrounds under it down to an opaque one; null where a picture is among them.
    colours(element) {
      const context = new OffscreenCanvas(1, 1).getContext('2d', {willReadFrequently: true});
      const behind = [];
      for (let at = element; at; at = at.parentElement) {
        const seen = getComputedStyle(at);
        if (seen.backgroundImage !== 'none') return null;
        const colour = paint(context, seen.backgroundColor);
        behind.push(colour);
        if (colour[3] === 1) break;
      }
      return [paint(context, getComputedStyle(element).color), behind];
    },
    editable: element => element.isContentEditable,
    chosen: element =>
      element.tagName === 'SELECT' ? [...element.selectedOptions].map(option => option.label).join(', ') : null,
    takesFiles: element => (element.control || element).matches('input[type=file]'),
    media: MEDIA,
    stored: (_element, area, key) => (area === 'local' ? localStorage : sessionStorage).getItem(key),
  };

  const answer = (element, body) => {
    const bytes = Uint8Array.from(atob(body), sign => sign.charCodeAt(0));
    const [name, ...given] = JSON.parse(new TextDecoder().decode(bytes));
    const told = document.createElement('p');  // in no document: the page never meets it
    told.textContent = JSON.stringify(readings[name](element, ...given) ?? null);
    return told;
  };
  const only = (element, body) => body !== 'seen' ? answer(element, body) : readings.seen(element) ? element : null;
  return {query: only, queryAll: (element, body) => [only(element, body)].filter(Boolean)};
})()
