"""What must be true in a witness: one model for each `expect`."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from evaluator.witness.checks_done import (
    ClipboardCheck,
    CompareCheck,
    ConsoleCheck,
    CsvContent,
    DialogCheck,
    DownloadCheck,
    JsonContent,
    MediaCheck,
    RequestCheck,
    StorageCheck,
)
from evaluator.witness.checks_shown import (
    AttributeCheck,
    BoxCheck,
    CanvasChangedCheck,
    ContrastCheck,
    CountCheck,
    EachCheck,
    FitsWidthCheck,
    ImageCheck,
    OrderCheck,
    StartCheck,
    StateCheck,
    StyleCheck,
    TextCheck,
    UrlCheck,
    ValueCheck,
)
from evaluator.witness.parts import Polled

__all__ = [
    "AttributeCheck",
    "BoxCheck",
    "CanvasChangedCheck",
    "Check",
    "ClipboardCheck",
    "CompareCheck",
    "ConsoleCheck",
    "ContrastCheck",
    "CountCheck",
    "CsvContent",
    "DialogCheck",
    "DownloadCheck",
    "EachCheck",
    "FitsWidthCheck",
    "ImageCheck",
    "JsonContent",
    "MediaCheck",
    "OrderCheck",
    "Polled",
    "RequestCheck",
    "StartCheck",
    "StateCheck",
    "StorageCheck",
    "StyleCheck",
    "TextCheck",
    "UrlCheck",
    "ValueCheck",
]

Check = Annotated[
    TextCheck
    | ValueCheck
    | CountCheck
    | StateCheck
    | UrlCheck
    | AttributeCheck
    | StyleCheck
    | BoxCheck
    | FitsWidthCheck
    | OrderCheck
    | EachCheck
    | StorageCheck
    | DownloadCheck
    | ClipboardCheck
    | DialogCheck
    | ConsoleCheck
    | MediaCheck
    | CanvasChangedCheck
    | ImageCheck
    | StartCheck
    | ContrastCheck
    | CompareCheck
    | RequestCheck,
    Field(discriminator="expect"),
]
