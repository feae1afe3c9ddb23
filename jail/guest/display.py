# display.py - bundles of MIME types: for display(), for figures, and for the last value if it has more than a repr
#
# {"text/plain": "...", "text/html": "..."}: a client takes the type that it can show. This part is loaded when there is something to
# show, and imports no library for it that the program has not imported. Everything is bounded, and the report lists what was cut;
# its readers check again.
need("value")
import _io
from binascii import a2b_base64, b2a_base64

DATUM_MAX = 2 << 20      # bytes of one datum as JSON
ROOM_MAX = 6 << 20       # bytes of all data of a call
WEIGHT_MAX = 250000      # values in all JSON of a call: few bytes can be many values
PLAIN_MAX = 32 << 10     # characters of a repr
DISPLAYS_MAX, FIGURES_MAX, SENTENCES_MAX = 32, 8, 50
WIDTH, HEIGHT = 640, 480 # in pixels; a figure has one to two times that
MIMES = {                # with the method of an object that makes it
    "text/plain": None,
    "text/html": "_repr_html_",
    "text/markdown": "_repr_markdown_",
    "text/latex": "_repr_latex_",
    "image/svg+xml": "_repr_svg_",
    "image/png": "_repr_png_",
    "image/jpeg": "_repr_jpeg_",
    "application/pdf": "_repr_pdf_",
    "application/json": "_repr_json_",
    "application/javascript": "_repr_javascript_",
    "application/vnd.plotly.v1+json": None,
}
BASE64 = "image/png", "image/jpeg", "application/pdf"
AS_JSON = "application/json", "application/vnd.plotly.v1+json"
SHOWN = RECORD()


def forget_shown():
    SHOWN.__dict__.update(displays=[], left_out=[], room=ROOM_MAX, weight=WEIGHT_MAX, figures=0, closed=0, more={})


forget_shown()


def leave_out(sentence):
    if len(SHOWN.left_out) < SENTENCES_MAX:
        SHOWN.left_out.append(cut(sentence, LINE_MAX))


def leave_out_one(what):
    """Counts one figure or display that is left out; the report has the sum."""
    SHOWN.more[what] = SHOWN.more.get(what, 0) + 1


# --- one datum ---

def base64_of(data):
    if is_a(data, str): # in IPython's protocol a str is base64 already
        if str.__len__(data) > DATUM_MAX:
            raise TooLarge
        data = a2b_base64(str.__str__(data))
    data = memoryview(data).cast("B")
    if len(data) > DATUM_MAX // 4 * 3 - 3:
        raise TooLarge
    return f'"{b2a_base64(data, newline=False).decode()}"'


def json_of_data(data):
    writer = Json()
    writer.left = DATUM_MAX
    writer.value(data)
    text = "".join(writer.pieces)
    SHOWN.weight -= text.count(",") + text.count(":") + 4 * (text.count("[") + text.count("{"))
    if SHOWN.weight < 0:
        raise TooLarge
    return text


def datum(mime, data):
    """The data as JSON text. Raises TooLarge, or an exception that says what is wrong with the data."""
    if mime in BASE64:
        return base64_of(data)
    if mime in AS_JSON:
        return json_of_data(data)
    if not is_a(data, str):
        raise TypeError("expected a text")
    if str.__len__(data) > DATUM_MAX:
        raise TooLarge
    return json_text(str.__str__(data))


def put(about, bundle, mime, data):
    try:
        text = datum(mime, data)
        size = len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
        if size > DATUM_MAX:
            raise TooLarge
    except TooLarge:
        return leave_out(f"{about}: {mime} has more than {DATUM_MAX >> 20} MiB")
    except Exception as error:
        return leave_out(f"{about}: {mime}: {type_name(type(error))}: {message_of(error)}")
    if size > SHOWN.room:
        return leave_out(f"{about}: {mime} is left out: all that a call shows has at most {ROOM_MAX >> 20} MiB")
    SHOWN.room -= size
    bundle[mime] = text


def put_plain(about, bundle, value):
    writer = Short(PLAIN_MAX)
    try:
        writer.value(value)
    except TooLarge:
        leave_out(f"{about}: text/plain is cut to {PLAIN_MAX} characters")
    except RuntimeError: # a thread changed it meanwhile
        pass
    put(about, bundle, "text/plain", "".join(writer.pieces))


# --- one object ---

def own(value, name, **options):
    """What the object's method returns, without the metadata that may come with it; None if there is no such method."""
    if not any(name in each.__dict__ for each in ancestors_of(value)):
        return None
    try:
        data = getattr(value, name)(**options)
    except Exception:
        return None # text/plain remains
    return data[0] if type(data) is tuple and len(data) == 2 and type(data[1]) is dict else data


def class_of(module, name):
    """A class that the program can have an instance of only if it has imported the module."""
    kind = getattr(sys.modules.get(module), name, ())
    return kind if is_a(kind, type) else ()


def put_own(about, bundle, value):
    """Uses IPython's protocol: _repr_mimebundle_ first, then the other methods."""
    made = own(value, "_repr_mimebundle_", include=None, exclude=None)
    for mime, method in MIMES.items():
        data = dict.get(made, mime) if is_a(made, dict) else None
        if data is None and method is not None:
            data = own(value, method)
        if data is not None:
            put(about, bundle, mime, data)


def put_plotly(about, bundle, figure):
    text = figure.to_json()
    if len(text) > DATUM_MAX:
        return leave_out(f"{about}: application/vnd.plotly.v1+json has more than {DATUM_MAX >> 20} MiB")
    from json import loads
    put(about, bundle, "application/vnd.plotly.v1+json", loads(text))


def encoded(image, kind):
    file = _io.BytesIO()
    image.save(file, kind)
    return file.getvalue()


def png_of(image):
    return encoded(image if image.mode in ("1", "L", "LA", "I", "P", "RGB", "RGBA", "I;16") else image.convert("RGB"), "PNG")


def put_image(about, bundle, image):
    """An image of PIL."""
    png = png_of(image)
    if len(png) > DATUM_MAX // 4 * 3 - 3:
        small = image.copy()
        small.thumbnail((2 * WIDTH, 2 * HEIGHT))
        leave_out(f"{about}: the image of {image.width} x {image.height} is shown as {small.width} x {small.height}")
        png = png_of(small)
    if len(png) > DATUM_MAX // 4 * 3 - 3:
        return put(about, bundle, "image/jpeg", encoded(small.convert("RGB"), "JPEG"))
    put(about, bundle, "image/png", png)


def put_all(about, bundle, value):
    if is_a(value, class_of("matplotlib.figure", "Figure")):
        put_figure(about, bundle, value)
    elif is_a(value, class_of("PIL.Image", "Image")):
        put_image(about, bundle, value)
    elif is_a(value, class_of("plotly.basedatatypes", "BaseFigure")):
        put_plotly(about, bundle, value)
    else:
        put_own(about, bundle, value)


def bundle_of(about, value):
    bundle = {}
    try:
        put_all(about, bundle, value)
    except Exception as error:
        leave_out(f"{about}: {type_name(type(error))}: {message_of(error)}")
    if "text/plain" not in bundle:
        put_plain(about, bundle, value)
    return bundle


def bundle_json(bundle):
    return f'{{{", ".join(f"{json_text(mime)}: {bundle[mime]}" for mime in MIMES if mime in bundle)}}}'


# --- figures of matplotlib ---

def box_of(figure):
    """Keywords for savefig(): a larger box where something is drawn beside the figure, such as a legend or a long label, unless it is far away."""
    try:
        figure.draw_without_rendering() # moves titles and labels to their places
        own, drawn = figure.bbox_inches, figure.get_tightbbox()
        box = type(own).union([own, drawn.padded(0.1)])
        is_larger = drawn.x0 < own.x0 - 0.01 or drawn.y0 < own.y0 - 0.01 or drawn.x1 > own.x1 + 0.01 or drawn.y1 > own.y1 + 0.01
        return {"bbox_inches": box} if is_larger and box.width <= 3 * own.width and box.height <= 3 * own.height else {}
    except Exception:
        return {} # a matplotlib that cannot tell; what is wrong with the figure is told when it is drawn


def draw(figure, dpi):
    """Warnings that the program wants to see are printed, without the line of this file."""
    from warnings import catch_warnings
    file = _io.BytesIO()
    with catch_warnings(record=True) as warned:
        figure.savefig(file, format="png", dpi=dpi, **box_of(figure))
    for line in dict.fromkeys(f"{each.category.__name__}: {each.message}\n" for each in warned):
        say(line)
    return file.getvalue()


def put_figure(about, bundle, figure):
    if SHOWN.figures == FIGURES_MAX:
        return leave_out_one("figures")
    SHOWN.figures += 1
    width, height = figure.get_size_inches()
    once = 1 / max(width / WIDTH, height / HEIGHT)
    png = draw(figure, min(max(figure.dpi, once), 2 * once))
    if len(png) > DATUM_MAX // 4 * 3 - 3:
        png = draw(figure, once)
    put(about, bundle, "image/png", png)


def is_blank(figure):
    return len(figure.get_children()) <= 1 # its background


def show_open_figures(but=None):
    """Shows all figures that pyplot has open, and closes them. `but` is only closed, because it is shown elsewhere."""
    pyplot = sys.modules["matplotlib.pyplot"]
    for number in list(pyplot.get_fignums()):
        figure = pyplot.figure(number)
        try:
            if figure is not but and not is_blank(figure):
                add(figure) if SHOWN.figures < FIGURES_MAX else leave_out_one("figures")
        finally:
            pyplot.close(figure)
            SHOWN.closed += 1


# --- what a call shows ---

def add_bundle(bundle):
    SHOWN.displays.append(bundle_json(bundle))


def add(value):
    if len(SHOWN.displays) == DISPLAYS_MAX:
        return leave_out_one("displays")
    add_bundle(bundle_of(f"display {len(SHOWN.displays) + 1}", value))


def add_raw(data):
    """display({"text/html": ...}, raw=True)"""
    if len(SHOWN.displays) == DISPLAYS_MAX:
        return leave_out_one("displays")
    bundle = {}
    for mime in MIMES:
        if mime in data:
            put(f"display {len(SHOWN.displays) + 1}", bundle, mime, data[mime])
    add_bundle(bundle)


def show(values, options):
    for value in values:
        if options.get("raw") is True and is_a(value, dict):
            add_raw(dict(value))
        else:
            add(value)


def has_image(bundle):
    return '"image/' in bundle


def add_file(path):
    """An image that the program has saved, if it is one that can be read and has room."""
    bundle = {}
    try:
        put(path, bundle, image_type_of(path), read_file(WORKSPACE + path))
    except Exception as error:
        leave_out(f"{path}: {type_name(type(error))}")
    if bundle and len(SHOWN.displays) < DISPLAYS_MAX:
        add_bundle({"text/plain": json_text(path), **bundle})
        return True
    return False


def shown_json(value, files, cut):
    """
    The keys displays, bundle and left_out of the report, each if there is something for it, and which of these image files are shown: none if
    the call shows an image anyway, which most likely is the same.
    """
    bundle = bundle_of("the result", value) if is_rich(value) else {}
    if "matplotlib.pyplot" in sys.modules:
        show_open_figures(value)
    shown = () if has_image(bundle) or any(map(has_image, SHOWN.displays)) else [path for path in files if add_file(path)]
    for what, number in SHOWN.more.items():
        leave_out(f"{number} more {what}: a call shows at most {FIGURES_MAX if what == 'figures' else DISPLAYS_MAX}")
    displays, left_out = SHOWN.displays, SHOWN.left_out + ([cut] if cut and [*bundle] in ([], ["text/plain"]) else [])
    return (f', "displays": [{", ".join(displays)}]' if displays else "") \
        + (f', "bundle": {bundle_json(bundle)}' if [*bundle] not in ([], ["text/plain"]) else "") \
        + (f', "left_out": {json_texts(left_out)}' if left_out else ""), shown
