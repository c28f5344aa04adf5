"""Pixels decide whether an image is usable: bad metadata is ignored, colors become sRGB."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Callable

import numpy as np
import pytest
from PIL import Image, ImageCms

from gan_runtime.data import preparations
from gan_runtime.data.conversion import ConvertedImage, NotUsableError, Target, convert
from gan_runtime.data.preparations import PreparationRequest
from gan_runtime.data.summary import Survey
from tests.data.conftest import BLUE, GREEN, RED, Pack, encoded
from tests.support import icc_profiles

SQUARE = Target(pixels=32, channels=3, ground=0, cropped=True)
IGNORED = "unreadable metadata ignored"


def convert_bytes(content: bytes, target: Target = SQUARE) -> ConvertedImage:
    return convert(io.BytesIO(content), target)


def quarters(form: str = "PNG", **options: object) -> bytes:
    """32 × 32: red, green; blue, white."""
    picture = Image.new("RGB", (32, 32), RED)
    for color, place in ((GREEN, (16, 0)), (BLUE, (0, 16)), ((255, 255, 255), (16, 16))):
        picture.paste(color, (*place, place[0] + 16, place[1] + 16))
    buffer = io.BytesIO()
    picture.save(buffer, form, **options)
    return buffer.getvalue()


def segment(marker: int, data: bytes) -> bytes:
    return b"\xff" + bytes([marker]) + struct.pack(">H", len(data) + 2) + data


def exif(kind: int, count: int, value: bytes) -> bytes:
    """A JPEG segment with an EXIF orientation of this type."""
    entry = struct.pack(">HHI", 0x0112, kind, count) + value.ljust(4, b"\0")
    return segment(0xE1, b"Exif\0\0MM\0*\0\0\0\x08\0\x01" + entry + b"\0\0\0\0")


def with_chunk(
    png: bytes, kind: bytes, data: bytes, *, last: bool = False, crc: int | None = None
) -> bytes:
    """A PNG with an extra chunk before or after its pixels."""
    chunk = struct.pack(">I", len(data)) + kind + data
    chunk += struct.pack(">I", zlib.crc32(kind + data) if crc is None else crc)
    place = len(png) - 12 if last else 33  # after the header, which has 25 bytes
    return png[:place] + chunk + png[place:]


JPEG = quarters("JPEG", quality=95)


@pytest.mark.parametrize(
    "odd",
    [
        exif(1, 1, b"\6"),
        exif(2, 2, b"6\0"),
        exif(7, 1, b"\6"),
        exif(3, 1, b"\0\x63"),
        exif(11, 1, b"\x7f\xc0\0\0"),
        segment(0xE1, b"Exif\0\0II"),
        segment(0xE1, b"Exif\0\0MM\0*\xff\xff\xff\xff"),
    ],
    ids=["byte", "text", "undefined", "ninety-nine", "not a number", "cut short", "leads nowhere"],
)
def test_an_invalid_exif_orientation_rotates_nothing(odd: bytes) -> None:
    row = convert_bytes(JPEG[:2] + odd + JPEG[2:])
    assert (row.pixels == convert_bytes(JPEG).pixels).all()
    assert row.changes == ()


def test_an_exif_rotation_is_applied_and_counted() -> None:
    row = convert_bytes(JPEG[:2] + exif(3, 1, b"\0\6") + JPEG[2:])
    assert row.changes == ("turned by EXIF",)
    assert (row.pixels == np.rot90(convert_bytes(JPEG).pixels, -1)).all()


LARGE = zlib.compress(bytes(2_500_000))


@pytest.mark.parametrize(
    ("kind", "data", "places"),
    [
        (b"zTXt", b"workflow\0\0" + LARGE, {}),
        (b"zTXt", b"workflow\0\0" + LARGE, {"last": True}),
        (b"iTXt", b"prompt\0\1\0\0\0" + LARGE, {}),
        (b"iCCP", b"camera\0\0" + LARGE, {}),
        (b"iCCP", b"camera\0\7" + zlib.compress(b"profile"), {}),
        (b"tEXt", b"comment\0fine", {"crc": 1}),
        (b"pHYs", b"\0", {}),
    ],
    ids=[
        "text",
        "text at the end",
        "international text",
        "large profile",
        "unknown packing",
        "checksum",
        "short",
    ],
)
def test_a_png_with_bad_metadata_is_used(kind: bytes, data: bytes, places: dict[str, int]) -> None:
    row = convert_bytes(with_chunk(quarters(), kind, data, **places))
    assert (row.pixels == convert_bytes(quarters()).pixels).all()
    assert row.changes == (IGNORED,)


def test_transparency_is_not_ignored_as_metadata() -> None:
    picture = Image.new("P", (40, 40), 1)
    picture.putpalette([*RED, *BLUE])
    buffer = io.BytesIO()
    picture.save(buffer, "PNG", transparency=1)
    row = convert_bytes(with_chunk(buffer.getvalue(), b"tEXt", b"comment\0fine", crc=1))
    assert set(row.pixels.ravel()) == {0}
    assert IGNORED in row.changes


@pytest.mark.parametrize("data", [(0xE0, b"JFIF"), (0xE2, b"ICC_PROFILE\0\1"), (0xEE, b"Adobe")])
def test_a_jpeg_with_bad_metadata_is_used(data: tuple[int, bytes]) -> None:
    """It is still rotated: readable metadata counts."""
    row = convert_bytes(JPEG[:2] + exif(3, 1, b"\0\3") + segment(*data) + JPEG[2:])
    assert (row.pixels == convert_bytes(JPEG).pixels[::-1, ::-1]).all()
    assert row.changes == (IGNORED, "turned by EXIF")


def test_truncated_pixels_are_damaged_despite_ignored_metadata() -> None:
    noise = Image.fromarray(np.random.default_rng(5).integers(0, 256, (64, 64, 3), dtype=np.uint8))
    buffer = io.BytesIO()
    noise.save(buffer, "PNG")
    with pytest.raises(NotUsableError, match="it is damaged"):
        convert_bytes(with_chunk(buffer.getvalue(), b"zTXt", b"workflow\0\0" + LARGE)[:-4_000])


ADOBE = icc_profiles.of_primaries(icc_profiles.ADOBE_RGB, 2.19921875)


@pytest.mark.parametrize("form", ["PNG", "JPEG", "WEBP"])
@pytest.mark.parametrize(
    ("primaries", "gamma"), [(icc_profiles.ADOBE_RGB, 2.19921875), (icc_profiles.DISPLAY_P3, 1.8)]
)
def test_colors_are_converted_to_srgb_by_their_profile(
    form: str, primaries: np.ndarray, gamma: float
) -> None:
    profile = icc_profiles.of_primaries(primaries, gamma)
    row = convert_bytes(encoded((180, 120, 60), form=form, quality=100, icc_profile=profile))
    assert "color profile to sRGB" in row.changes
    expected = icc_profiles.in_srgb((180, 120, 60), primaries, gamma)
    assert abs(row.pixels - expected).max() <= (1.0 if form == "PNG" else 5.0)
    assert abs(expected - (180, 120, 60)).max() > 10.0


def test_gray_images_are_converted_by_their_profile() -> None:
    profile = icc_profiles.of_grey(1.0)  # linear light, not levels
    row = convert_bytes(encoded((55,), icc_profile=profile), Target(32, 1, 0, True))
    assert set(row.pixels.ravel()) == {128}  # 55 of 255 is 0.216 of the light, mid-gray in sRGB


def test_transparency_stays_in_place_when_colors_are_converted() -> None:
    picture = Image.new("RGBA", (40, 40), (180, 120, 60, 255))
    picture.paste((0, 0, 0, 0), (0, 0, 40, 20))
    buffer = io.BytesIO()
    picture.save(buffer, "PNG", icc_profile=ADOBE)
    row = convert_bytes(buffer.getvalue(), Target(32, 3, 128, True))
    assert set(row.pixels[:14].ravel()) == {128}
    assert (
        row.pixels[20:] == convert_bytes(encoded((180, 120, 60), icc_profile=ADOBE)).pixels[20:]
    ).all()
    assert row.changes == ("color profile to sRGB", "transparency laid on the ground", "resized")


def test_srgb_images_are_unchanged() -> None:
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    row = convert_bytes(quarters(icc_profile=profile))
    assert (row.pixels == convert_bytes(quarters()).pixels).all()
    assert row.changes == ()


@pytest.mark.parametrize(
    "profile", [b"profile", ADOBE[:200], icc_profiles.of_grey(2.0)], ids=["text", "torn", "grey"]
)
def test_an_unusable_color_profile_is_ignored_and_counted(profile: bytes) -> None:
    row = convert_bytes(quarters(icc_profile=profile))
    assert (row.pixels == convert_bytes(quarters()).pixels).all()
    assert row.changes == ("unusable color profile ignored",)


def deep(level: int, first: int | None = None) -> bytes:
    """40 × 40 in 16 bits of gray; its first row may be brighter."""
    levels = np.full((40, 40), level, np.uint16)
    levels[0] = level if first is None else first
    buffer = io.BytesIO()
    Image.fromarray(levels).save(buffer, "PNG")
    return buffer.getvalue()


def deep_colors(level: int) -> bytes:
    """40 × 40 with 16 bits per channel, which Pillow does not write."""
    rows = (b"\0" + struct.pack(">H", level) * 3 * 40) * 40
    png = quarters()
    header = struct.pack(">IIBBBBB", 40, 40, 16, 2, 0, 0, 0)
    whole = png[:8] + png[-12:]
    for kind, data in ((b"IDAT", zlib.compress(rows)), (b"IHDR", header)):
        chunk = (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )
        whole = whole[:8] + chunk + whole[8:]
    return whole


@pytest.fixture
def surveyed(spread: Pack) -> Callable[..., Survey]:
    """Surveys files as images of 28 × 28, in gray by default."""

    def look(files: dict[str, bytes], color: str = "gray") -> Survey:
        request = PreparationRequest(
            "pictures", "deep", spread(files), {"pixels": "28", "color": color}
        )
        return preparations.survey(request, lambda *_: None)

    return look


@pytest.mark.parametrize(
    ("brightest", "bits", "white"),
    [(900, 10, 1_023), (2_600, 12, 4_095), (9_000, 14, 16_383), (20, 8, 255)],
)
def test_low_depth_16_bit_images_scale_by_the_brightest_image(
    surveyed: Callable[..., Survey], brightest: int, bits: int, white: int
) -> None:
    survey = surveyed(
        {
            "bright.png": deep(brightest),
            "dark.png": deep(brightest // 4),
            "plain.png": encoded((7,)),
        }
    )
    levels = {int(row.max()) for row in survey.grid}
    assert levels == {7, round(255 * brightest / white), round(255 * (brightest // 4) / white)}
    assert survey.summary.converted[f"{bits} bits in 16 to 8"] == 2
    assert survey.summary.warnings == (
        (
            f"No value of the 16-bit images is above {brightest:,}. They are read as {bits} bits,"
            f" with white at {white:,}."
        ),
    )


def test_a_dark_image_among_bright_ones_stays_dark(surveyed: Callable[..., Survey]) -> None:
    survey = surveyed({"dark.png": deep(2_570), "light.png": deep(0, first=65_535)})
    assert sorted(int(row[20, 20, 0]) for row in survey.grid) == [0, 10]
    assert survey.summary.converted["16 bits to 8"] == 2
    assert survey.summary.warnings == ()


def test_full_16_bit_colors_are_read_and_lower_depths_refused(
    surveyed: Callable[..., Survey],
) -> None:
    """Of 12 bits in 16, only four would remain."""
    assert set(surveyed({"a.png": deep_colors(51_400)}, "rgb").grid.ravel()) == {200}
    survey = surveyed({"a.png": deep_colors(4_000), "b.png": encoded(RED)}, "rgb")
    [skip] = survey.summary.skipped.first
    assert skip.reason.startswith("it has 12 bits in 16-bit colors, and only the upper 8 are read")


def test_one_value_of_16_bit_gray_is_transparent_not_its_neighbors() -> None:
    """All columns but two have the same upper 8 bits."""
    levels = np.tile(np.arange(40_000, 40_040, dtype=np.uint16), (40, 1))
    levels[:, 39] = 65_535
    buffer = io.BytesIO()
    Image.fromarray(levels).save(buffer, "PNG", transparency=40_003)
    row = convert_bytes(buffer.getvalue(), Target(40, 1, 0, True))
    assert np.flatnonzero(row.pixels[0, :, 0] == 0).tolist() == [3]
    assert row.pixels[0, :3, 0].tolist() == [156, 156, 156]


@pytest.mark.parametrize(("transparent", "shown"), [(51_400, 0), (200, 200)])
def test_a_transparent_16_bit_color_is_compared_by_its_upper_8_bits(
    transparent: int, shown: int
) -> None:
    """The lower 8 bits of 200 are those of 51,400 >> 8."""
    data = struct.pack(">3H", *[transparent] * 3)
    chunk = struct.pack(">I", 6) + b"tRNS" + data + struct.pack(">I", zlib.crc32(b"tRNS" + data))
    png = deep_colors(51_400)
    place = png.index(b"IDAT") - 4
    row = convert_bytes(png[:place] + chunk + png[place:], Target(40, 3, 0, True))
    assert set(row.pixels.ravel()) == {shown}
