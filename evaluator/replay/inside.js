// What is read of an element, in a world beside the page's own: a page that redefines its built-ins changes nothing here.
(() => {
  // A form answers with its own fields, in every world, where one is named like a property (`name=parentElement`): the
  // prototypes' accessors and methods are taken instead.
  const get = (proto, name) => Function.prototype.call.bind(Object.getOwnPropertyDescriptor(proto, name).get);
  const does = (proto, name) => Function.prototype.call.bind(proto[name]);
  const tagName = get(Element.prototype, 'localName');
  const parentNode = get(Node.prototype, 'parentNode');
  const slot = get(Element.prototype, 'assignedSlot');
  const over = node => {
    const up = slot(node) || parentNode(node);
    return up instanceof ShadowRoot ? up.host : up instanceof Element ? up : null;
  };
  const box = does(Element.prototype, 'getBoundingClientRect');
  const isShown = does(Element.prototype, 'checkVisibility');
  const attribute = does(Element.prototype, 'getAttribute');
  const holds = does(Node.prototype, 'contains');
  const rootOf = does(Node.prototype, 'getRootNode');
  const scrollTo = does(Element.prototype, 'scrollIntoView');
  const innerText = get(HTMLElement.prototype, 'innerText');
  const textContent = get(Node.prototype, 'textContent');
  const wide = get(Element.prototype, 'scrollWidth'), fitting = get(Element.prototype, 'clientWidth');

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
      const name = tagName(element);
      if (name === 'title') return element === document.head?.querySelector('title');
      // what is in a list has no box of its own while the list is closed
      if (name === 'option' || name === 'optgroup') element = element.closest('select') ?? element;
      if (!isShown(element, {opacityProperty: true, visibilityProperty: true})) return false;
      const at = box(element);
      if (at.width * at.height <= 1) return false;
      return at.right + scrollX > 0 && at.bottom + scrollY > 0;
    },
    text: element => element instanceof HTMLElement ? innerText(element) : textContent(element),
    attribute,
    style,
    // The style, and whether it is the same as each of two others, colours compared as colours.
    styleBeside(element, property, pseudo, wanted, unwanted) {
      const seen = style(element, property, pseudo);
      const plain = value => {
        const context = new OffscreenCanvas(1, 1).getContext('2d');
        context.fillStyle = '#010203';
        context.fillStyle = value;  // stays as it was for what is no colour by itself (`inherit`, `var(…)`)
        return context.fillStyle === '#010203' ? value : context.fillStyle;
      };
      const same = value => value !== null && plain(seen) === plain(value);
      return [seen, same(wanted), same(unwanted)];
    },
    side: (element, name) => Math.round(box(element)[name]),
    widths: element => [wide(element), fitting(element)],
    // The text's colour, and the backgrounds under it down to an opaque one; null where a picture is among them.
    colours(element) {
      const context = new OffscreenCanvas(1, 1).getContext('2d', {willReadFrequently: true});
      const text = paint(context, getComputedStyle(element).webkitTextFillColor);
      for (let at = element; at; at = over(at)) text[3] *= Number(getComputedStyle(at).opacity);
      const behind = [];
      for (let at = element; at; at = over(at)) {
        const seen = getComputedStyle(at);
        if (seen.backgroundImage !== 'none') return null;
        const colour = paint(context, seen.backgroundColor);
        behind.push(colour);
        if (colour[3] === 1) break;
      }
      return [text, behind];
    },
    editable: element => element.isContentEditable,
    chosen: element =>
      element instanceof HTMLSelectElement ? [...element.selectedOptions].map(option => option.label).join(', ') : null,
    takesFiles: element => (element.control || element).matches('input[type=file]'),
    media: MEDIA,
    // Whether the element's middle is on screen and can be hit, and by what it is covered.
    hit(element) {
      scrollTo(element, {block: 'center', inline: 'center'});
      const at = box(element), root = rootOf(element);
      const on = at.bottom > 0 && at.right > 0 && at.top < innerHeight && at.left < innerWidth;
      const there = (root.elementFromPoint ? root : document).elementFromPoint(at.x + at.width / 2, at.y + at.height / 2);
      const labels = [...element.labels || []];
      const own = there && (holds(element, there) || holds(there, element) || labels.includes(there));
      return {on, hit: !!own, size: [Math.round(at.width), Math.round(at.height)],
        over: there && !own ? tagName(there) + (attribute(there, 'id') ? '#' + attribute(there, 'id') : '') : ''};
    },
    labels: element => [...element.labels || []].length,
    forget: () => { localStorage.clear(); sessionStorage.clear(); },
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
