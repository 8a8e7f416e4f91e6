#!/usr/bin/env python3
"""Writes the test pictures and sounds, and what the reference libraries make of
the pictures (pillow.safetensors: uint8 [height, width, 3] for each file).

Made with Pillow 9.4.0 and cjpeg of libjpeg-turbo 2.1.5; oggenc, lame and flac
for the sounds. Debian packages: python3-pil libjpeg-turbo-progs vorbis-tools
lame flac. The tests do not need this script.
"""
import json, math, os, random, struct, subprocess, wave, zlib
from PIL import Image, ImageOps

os.chdir(os.path.dirname(os.path.abspath(__file__)))
arrays = {}


def noise(w, h, mode="RGB", seed=1):
    r = random.Random(seed)
    return Image.frombytes(mode, (w, h), bytes(r.randrange(256) for _ in range(w * h * len(mode))))


def smooth(w, h, mode="RGB", seed=1):
    return noise(w // 4 + 2, h // 4 + 2, mode, seed).resize((w, h), Image.BICUBIC)


def want(name):
    im = Image.open("images/" + name)
    im.load()  # TIFF turns itself upright here
    im = ImageOps.exif_transpose(im).convert("RGB")
    arrays[name] = ([im.size[1], im.size[0], 3], im.tobytes())


def save(im, name, **k):
    im.save("images/" + name, **k)
    want(name)


def cjpeg(im, name, *args):
    ppm = b"P6 %d %d 255\n" % im.size + im.tobytes()
    subprocess.run(["cjpeg", "-quality", "90", *args, "-outfile", "images/" + name], input=ppm, check=True)
    want(name)


def patch(src, name, f):
    d = f(bytearray(open("images/" + src, "rb").read()))
    open("images/" + name, "wb").write(d)
    want(name)


def chunk(t, d):
    return struct.pack(">I", len(d)) + t + d + struct.pack(">I", zlib.crc32(t + d))


def png(name, w, h, depth, colour, rows, extra=b""):
    d = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", w, h, depth, colour, 0, 0, 0)) + extra
    d += chunk(b"IDAT", zlib.compress(b"".join(b"\0" + r for r in rows))) + chunk(b"IEND", b"")
    open("images/" + name, "wb").write(d)
    want(name)


W, H = 23, 17
im = smooth(W, H)

# JPEG: every chroma ratio, both codings, and sizes at which libjpeg stops
# interpolating.
for sample in ("1x1", "2x1", "1x2", "2x2", "4x1", "4x2"):
    cjpeg(im, f"ratio-{sample}.jpg", "-sample", sample)
for w, h in ((1, 1), (4, 5), (5, 4), (16, 8)):
    cjpeg(smooth(w, h), f"size-{w}x{h}.jpg", "-sample", "2x2")
cjpeg(im, "progressive.jpg", "-progressive")
cjpeg(im, "restart.jpg", "-progressive", "-restart", "1B")
cjpeg(im, "restart-baseline.jpg", "-restart", "2B")
cjpeg(im, "rgb.jpg", "-rgb")
cjpeg(noise(W, H), "noise.jpg", "-quality", "100")
save(im.convert("L"), "grey.jpg", quality=90)
cmyk = smooth(W, H, "CMYK")
save(cmyk, "cmyk.jpg", quality=95, subsampling=0)
save(cmyk, "cmyk-420.jpg", quality=95, subsampling=2)


def adobe(transform):
    def f(d):
        d[d.index(b"Adobe") + 11] = transform
        return d
    return f


def no_adobe(d):
    i = d.index(b"\xff\xee")
    return d[:i] + d[i + 2 + struct.unpack(">H", d[i + 2:i + 4])[0]:]


patch("cmyk.jpg", "ycck.jpg", adobe(2))
patch("cmyk-420.jpg", "ycck-420.jpg", adobe(2))
patch("cmyk.jpg", "cmyk-bare.jpg", no_adobe)

# PNG: all colour types and depths. Odd bytes of 16-bit grey are mostly 0 so
# that not all is clipped.
rgba = noise(W, H, "RGBA")
pal = noise(W, H).quantize(200)
save(rgba, "rgba.png")
save(noise(W, H).quantize(200), "palette.png")
pal.save("images/palette-alpha.png", transparency=bytes(range(200)))
want("palette-alpha.png")
for depth in (1, 2, 4, 8, 16):
    for colour, n in ((0, 1), (2, 3), (4, 2), (6, 4)):
        if depth < 8 and colour:
            continue
        r = random.Random(depth)
        rows = [bytes(r.randrange(256) if depth < 16 or i % 2 or r.random() < 0.4 else 0
                      for i in range((W * n * depth + 7) // 8)) for _ in range(H)]
        png(f"type{colour}-{depth}.png", W, H, depth, colour, rows)
        if colour in (0, 2):
            png(f"type{colour}-{depth}-key.png", W, H, depth, colour, rows, chunk(b"tRNS", b"\0\1" * n))
png("palette-short.png", 4, 1, 8, 3, [bytes([0, 1, 0, 1])], chunk(b"PLTE", bytes([9, 8, 7, 6, 5, 4])))

# WebP
save(im, "lossy.webp", quality=80)
save(smooth(W, H, "RGBA"), "lossy-alpha.webp", quality=80)
save(rgba, "lossless.webp", lossless=True, exact=True)
for w, h in ((1, 1), (2, 3), (16, 16)):
    save(smooth(w, h), f"size-{w}x{h}.webp", quality=90)

# GIF
save(pal, "plain.gif")
save(pal, "transparent.gif", transparency=7)
save(pal, "interlaced.gif", interlace=1)


def larger_canvas(d):
    d[6:10] = struct.pack("<HH", 20, 15)
    i = 13 + (3 << ((d[10] & 7) + 1) if d[10] & 0x80 else 0)
    while d[i] == 0x21:
        i += 2
        while d[i]:
            i += d[i] + 1
        i += 1
    d[i + 1:i + 5] = struct.pack("<HH", 3, 4)
    return d


small = noise(10, 6).quantize(16)
save(small, "offset.gif")
patch("offset.gif", "offset.gif", larger_canvas)
save(small, "offset-transparent.gif", transparency=3)
patch("offset-transparent.gif", "offset-transparent.gif", larger_canvas)

# BMP and TIFF
for name, x in (("rgb", noise(W, H)), ("grey", noise(W, H, "L")), ("palette", pal), ("bilevel", noise(W, H, "L").convert("1")), ("rgba", rgba)):
    save(x, name + ".bmp")
    for c in (None, "tiff_lzw", "packbits"):
        if c == "packbits" and name != "palette" or c is None and name == "grey":
            continue
        save(x, f"{name}-{c}.tif", compression=c)
save(Image.frombytes("I;16", (W, H), bytes((7 * i) % 256 if i % 2 == 0 else i % 3 // 2 for i in range(2 * W * H))), "grey16.tif")


def associated(d):
    d[d.index(struct.pack("<HHI", 0x152, 3, 1)) + 8] = 1
    return d


patch("rgba-None.tif", "associated.tif", associated)

# EXIF orientation
base = smooth(7, 5)
for o in range(1, 9):
    e = Image.Exif()
    e[0x112] = o
    save(base, f"exif{o}.jpg", exif=e, subsampling=0)
    save(base, f"exif{o}.png", exif=e)
    save(base, f"exif{o}.webp", exif=e, lossless=True)
    # Pillow 9.4 turns a TIFF twice if it is loaded before exif_transpose, so
    # what is wanted is taken from the PNG.
    base.save(f"images/exif{o}.tif", exif=e)
    arrays[f"exif{o}.tif"] = arrays[f"exif{o}.png"]

# Animated WebP: the first frame, and all frames as one tall picture.
frames = [smooth(12, 8, "RGBA", s) for s in range(4)]
for name, k in (("anim-lossless", {"lossless": True, "exact": True}), ("anim-lossy", {"quality": 70})):
    frames[0].save(f"images/{name}.webp", save_all=True, append_images=frames[1:], duration=[100, 200, 300, 400], **k)
    want(name + ".webp")
    x = Image.open(f"images/{name}.webp")
    rows = b""
    for i in range(4):
        x.seek(i)
        rows += x.convert("RGB").tobytes()
    arrays[name + "/frames"] = ([4, 8, 12, 3], rows)

# Resizing
src = noise(37, 29)
arrays["resize/source"] = ([29, 37, 3], src.tobytes())
for f, name in ((Image.BILINEAR, "bilinear"), (Image.BICUBIC, "bicubic"), (Image.LANCZOS, "lanczos")):
    for w, h in ((37, 11), (16, 29), (9, 7), (1, 1), (74, 58), (61, 12), (3, 80)):
        arrays[f"resize/{name}/{w}x{h}"] = ([h, w, 3], src.resize((w, h), f).tobytes())

header, at = {}, 0
for name, (shape, data) in arrays.items():
    header[name] = {"dtype": "U8", "shape": shape, "data_offsets": [at, at + len(data)]}
    at += len(data)
h = json.dumps(header).encode()
h += b" " * (-len(h) % 8)
with open("pillow.safetensors", "wb") as f:
    f.write(struct.pack("<Q", len(h)) + h + b"".join(d for _, d in arrays.values()))

# Sounds: 0.3 s of 440 Hz and 1234.5 Hz, the right channel at half the level.
def tone(name, rate, channels, seconds=0.3, width=2):
    w = wave.open("audio/" + name, "wb")
    w.setnchannels(channels)
    w.setsampwidth(width)
    w.setframerate(rate)
    for i in range(round(rate * seconds)):
        v = 0.4 * math.sin(2 * math.pi * 440 * i / rate) + 0.2 * math.sin(2 * math.pi * 1234.5 * i / rate)
        for c in range(channels):
            level = round(v * (1, 0.5)[c] * (1 << 8 * width - 1))
            w.writeframes(level.to_bytes(width, "little", signed=True))
    w.close()


def run(*args):
    subprocess.run(args, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


tone("a.wav", 44100, 2)
run("flac", "-s", "-f", "audio/a.wav", "-o", "audio/stereo16.flac")
run("oggenc", "-Q", "-s", "1", "audio/a.wav", "-o", "audio/stereo.ogg")
run("lame", "-b", "128", "audio/a.wav", "audio/cbr.mp3")
run("lame", "-V", "4", "audio/a.wav", "audio/vbr.mp3")
run("lame", "-t", "-b", "96", "--resample", "44.1", "audio/a.wav", "audio/untagged.mp3")
tone("a.wav", 48000, 1)
run("lame", "-b", "64", "audio/a.wav", "audio/mono48.mp3")
tone("a.wav", 48000, 1, 0.05, 3)
run("flac", "-s", "-f", "audio/a.wav", "-o", "audio/mono24.flac")
tone("a.wav", 22050, 1, 0.1)
run("lame", "-b", "64", "audio/a.wav", "audio/mpeg2.mp3")
os.remove("audio/a.wav")
