"""One image file becomes one row: upright, on its background, cropped or fitted, resized."""

from __future__ import annotations

import io
import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from gan_runtime.data.conversion import NotUsableError, Target, convert, ground_warning
from tests.data.conftest import BLUE, GREEN, RED, encoded

SQUARE = Target(pixels=32, channels=3, ground=0, cropped=True)
WHOLE = Target(pixels=32, channels=3, ground=255, cropped=False)


def row(content: bytes, target: Target = SQUARE) -> np.ndarray:
    return convert(io.BytesIO(content), target).pixels


def refused(content: bytes, target: Target = SQUARE) -> tuple[str, str]:
    with pytest.raises(NotUsableError) as error:
        row(content, target)
    return error.value.kind, str(error.value)


def halves(
    left_color: tuple[int, int, int], right_color: tuple[int, int, int], **options: object
) -> bytes:
    """80 × 40: two colors side by side."""
    picture = Image.new("RGB", (80, 40), left_color)
    picture.paste(right_color, (40, 0, 80, 40))
    buffer = io.BytesIO()
    picture.save(buffer, "PNG", **options)
    return buffer.getvalue()


@pytest.mark.parametrize("form", ["PNG", "JPEG", "WEBP"])
def test_png_jpeg_and_webp_become_uint8_of_the_requested_size(form: str) -> None:
    pixels = row(encoded((200, 100, 50), (61, 47), form))
    assert (pixels.shape, pixels.dtype) == ((32, 32, 3), np.uint8)
    assert abs(pixels.astype(int) - (200, 100, 50)).max() <= 4


def test_gray_is_the_luminance() -> None:
    pixels = row(encoded((200, 100, 50)), Target(28, 1, 0, True))
    assert pixels.shape == (28, 28, 1)
    assert set(pixels.ravel()) == {round(0.299 * 200 + 0.587 * 100 + 0.114 * 50)}


def test_gray_images_become_rgb_when_requested() -> None:
    assert set(row(encoded((77,))).ravel()) == {77}


def test_the_center_square_is_cropped() -> None:
    picture = Image.new("RGB", (120, 40), RED)
    picture.paste(GREEN, (40, 0, 80, 40))
    buffer = io.BytesIO()
    picture.save(buffer, "PNG")
    pixels = row(buffer.getvalue())
    assert (pixels[:, 4:28] == GREEN).all()
    assert (pixels[:, 1:31, 1] > 200).all()


def test_a_fitted_image_is_whole_between_two_background_bars() -> None:
    pixels = row(halves(RED, GREEN), WHOLE)
    assert (pixels[:8] == 255).all()
    assert (pixels[24:] == 255).all()
    assert (pixels[11:21, 3:11] == RED).all()
    assert (pixels[11:21, 21:29] == GREEN).all()


def test_an_image_is_rotated_by_its_exif_orientation() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # the camera was held upright: rotate by 90° clockwise
    pixels = row(halves(RED, GREEN, exif=exif), Target(32, 3, 0, False))
    assert (pixels[3:11, 11:21] == RED).all()
    assert (pixels[21:29, 11:21] == GREEN).all()


@pytest.mark.parametrize(
    ("ground", "color"), [(0, (0, 0, 0)), (255, (255, 255, 255)), (128, (128, 128, 128))]
)
def test_the_background_shows_through_transparency(
    ground: int, color: tuple[int, int, int]
) -> None:
    target = Target(32, 3, ground, True)
    assert (row(encoded((*BLUE, 0)), target) == color).all()
    assert (row(encoded((*BLUE, 255)), target) == BLUE).all()


def ink(level: int, count: int) -> list[tuple[float, ...]]:
    """The contrasts of images with a stroke of one gray level on transparency."""
    picture = Image.new("LA", (80, 40), (level, 0))
    picture.paste((level, 255), (20, 10, 30, 35))
    buffer = io.BytesIO()
    picture.save(buffer, "PNG")
    return [convert(io.BytesIO(buffer.getvalue()), SQUARE).contrasts] * count


@pytest.mark.parametrize(
    ("level", "ground", "better"),
    [
        (0, "black", "white"),
        (20, "black", "white"),
        (250, "white", "black"),
        (128, "gray", "black"),
        (120, "gray", "white"),
    ],
)
def test_ink_of_the_color_of_its_background_is_reported(
    level: int, ground: str, better: str
) -> None:
    assert ground_warning(ink(level, 3), ground) == (
        f"3 of 3 transparent images can hardly be seen on the {ground} background: use"
        f" ground={better}."
    )
    assert ground_warning(ink(level, 3), better) == ""


def test_few_images_without_contrast_give_no_warning() -> None:
    opaque = convert(io.BytesIO(encoded(BLUE)), SQUARE).contrasts
    assert opaque == ()
    assert ground_warning([*ink(0, 1), *ink(200, 9), opaque], "black") == ""
    assert ground_warning([*ink(0, 2), *ink(200, 9)], "black").startswith("2 of 11 transparent")
    assert ground_warning([opaque], "black") == ""


def test_a_transparent_palette_color_shows_the_background() -> None:
    picture = Image.new("P", (40, 40), 3)
    picture.putpalette([0, 0, 0] * 3 + list(BLUE))
    buffer = io.BytesIO()
    picture.save(buffer, "PNG", transparency=3)
    assert (row(buffer.getvalue(), Target(32, 3, 255, True)) == 255).all()


def test_sixteen_bit_gray_keeps_its_shades() -> None:
    buffer = io.BytesIO()
    Image.fromarray(np.full((40, 40), 128 * 257, np.uint16)).save(buffer, "PNG")
    assert set(row(buffer.getvalue()).ravel()) == {128}


def test_cmyk_colors_become_rgb() -> None:
    buffer = io.BytesIO()
    Image.new("CMYK", (40, 40), (0, 255, 255, 0)).save(buffer, "JPEG")
    pixels = row(buffer.getvalue()).astype(int)
    assert pixels[..., 0].min() > 200
    assert pixels[..., 1:].max() < 60


@pytest.mark.parametrize("form", ["PNG", "WEBP"])
def test_the_first_frame_of_an_animation_is_used(form: str) -> None:
    buffer = io.BytesIO()
    first, second = (Image.new("RGB", (40, 40), color) for color in (RED, BLUE))
    first.save(buffer, form, save_all=True, append_images=[second])
    pixels = row(buffer.getvalue()).astype(int)
    assert abs(pixels - RED).max() <= 4


def test_a_large_jpeg_decoded_at_reduced_size_keeps_its_layout() -> None:
    picture = Image.new("RGB", (640, 640), RED)
    picture.paste(BLUE, (320, 0, 640, 640))
    buffer = io.BytesIO()
    picture.save(buffer, "JPEG", quality=95)
    pixels = row(buffer.getvalue()).astype(int)
    assert abs(pixels[:, :15] - RED).max() < 12
    assert abs(pixels[:, 17:] - BLUE).max() < 12


def test_an_image_smaller_than_requested_is_not_enlarged() -> None:
    assert refused(encoded(size=(31, 90))) == (
        "too small",
        "it has 31 × 90 pixels, fewer than 32 × 32",
    )
    assert row(encoded(size=(31, 90)), WHOLE).shape == (32, 32, 3)
    assert refused(encoded(size=(31, 20)), WHOLE)[0] == "too small"


@pytest.mark.parametrize("form", ["PNG", "JPEG", "WEBP"])
def test_a_truncated_file_is_damaged(form: str) -> None:
    noise = io.BytesIO()
    Image.fromarray(np.random.default_rng(1).integers(0, 256, (64, 64, 3), dtype=np.uint8)).save(
        noise, form
    )
    content = noise.getvalue()
    kind, reason = refused(content[: len(content) // 2])
    assert (kind, reason) in {
        ("damaged", "it is damaged"),
        ("no image", "it is not a JPEG, PNG or WebP image"),
    }


@pytest.mark.parametrize("content", [b"", b"hello", encoded(form="GIF"), encoded(form="BMP")])
def test_other_files_are_not_images(content: bytes) -> None:
    assert refused(content) == ("no image", "it is not a JPEG, PNG or WebP image")


@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
@pytest.mark.parametrize("side", [9_500, 20_000, 60_000])
def test_a_decompression_bomb_is_not_opened(side: int) -> None:
    """A small PNG whose header declares 90 million pixels or more."""

    def part(kind: bytes, content: bytes) -> bytes:
        return (
            struct.pack(">I", len(content))
            + kind
            + content
            + struct.pack(">I", zlib.crc32(kind + content))
        )

    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    bomb = (
        b"\x89PNG\r\n\x1a\n"
        + part(b"IHDR", header)
        + part(b"IDAT", zlib.compress(bytes(100)))
        + part(b"IEND", b"")
    )
    assert refused(bomb) == ("too large", "it has more than 89 million pixels")
